"""evaluations: how good a generation is on the holdout."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, NonNegativeInt

from stream_cgzsl.schemas.event import Event, Name, Sha256

Share = Annotated[float, Field(ge=0, le=1)]


class Evaluation(Event):
    """Per-class mean accuracies of one generation over the holdout below its ledger record's cut."""

    TYPE: ClassVar[str] = "cgzsl.evaluation"
    KEY: ClassVar[str | None] = "generation"

    generation: NonNegativeInt
    digest: Sha256
    samples: NonNegativeInt
    seen: Share | None = None
    unseen: Share | None = None
    harmonic: Share | None = None
    per_class: dict[Name, Share] = {}
