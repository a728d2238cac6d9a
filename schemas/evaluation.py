"""evaluations: how good a generation is on the holdout."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.fields import Count, Name, Sha256, Share


class Evaluation(Event):
    """Per-class mean accuracies of one generation over the holdout below its ledger record's cut."""

    TYPE: ClassVar[str] = "cgzsl.evaluation"
    KEY: ClassVar[str | None] = "generation"

    generation: Count
    digest: Sha256
    samples: Count
    seen: Share | None = None
    unseen: Share | None = None
    harmonic: Share | None = None
    per_class: dict[Name, Share] = Field(default_factory=dict)
