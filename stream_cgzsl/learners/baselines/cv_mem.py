"""CV+mem: Seq-CVAE whose windows are mixed with stored exemplars of the classes before.

It keeps exemplars: `memory` rows a class. Doubtful: the paper does not print how many; 10 is what A-GEM has for CUB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stream_cgzsl.learners.baselines.seq_cvae import CvaeOptions, SeqCvae
from stream_cgzsl.learners.interface import Keeps
from stream_cgzsl.learners.options import parse_options


@dataclass(frozen=True)
class CvMemOptions(CvaeOptions):
    memory: int = 10


class CvMem(SeqCvae):
    """Memory: the autoencoder, the head and the exemplars."""

    name = "cv-mem"
    keeps: ClassVar[Keeps] = "exemplars"

    def _parsed(self, options: Mapping[str, Any] | None) -> CvMemOptions:
        return parse_options(CvMemOptions, options, self.name)
