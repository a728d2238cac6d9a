"""CA+mem: Seq-CADA whose windows are mixed with stored exemplars of the classes before.

It keeps exemplars: `memory` rows a class. Doubtful: the paper does not print how many; 10 is what A-GEM has for CUB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stream_cgzsl.learners.baselines.seq_cada import CadaOptions, SeqCada
from stream_cgzsl.learners.interface import Keeps
from stream_cgzsl.learners.options import parse_options


@dataclass(frozen=True)
class CaMemOptions(CadaOptions):
    memory: int = 10


class CaMem(SeqCada):
    """Memory: that of Seq-CADA, and the exemplars."""

    name = "ca-mem"
    keeps: ClassVar[Keeps] = "exemplars"

    def _parsed(self, options: Mapping[str, Any] | None) -> CaMemOptions:
        return parse_options(CaMemOptions, options, self.name)
