"""evaluations: how good a generation is on the holdout."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.fields import Count, Name, Number, Sha256, Share


class Evaluation(Event):
    """Per-class mean accuracies of one generation over the holdout below its ledger record's cut.

    `forgetting` is how much lower the accuracy of learned classes is than the best it has been since each was learned,
    `area` the area under the curve of seen against unseen accuracy, `movement` the angle in radians by which each
    class's projection turned since the generation before. `best` is that best accuracy of every learned class, this
    evaluation included: what the next evaluation compares with.
    """

    TYPE: ClassVar[str] = "cgzsl.evaluation"
    KEY: ClassVar[str | None] = "generation"

    generation: Count
    digest: Sha256
    samples: Count
    seen: Share | None = None
    unseen: Share | None = None
    harmonic: Share | None = None
    forgetting: Share | None = None
    area: Share | None = None
    per_class: dict[Name, Share] = Field(default_factory=dict)
    best: dict[Name, Share] = Field(default_factory=dict)
    movement: dict[Name, Number] = Field(default_factory=dict)
