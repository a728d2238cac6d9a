"""evaluations: the accuracy of a generation on the holdout."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stream_cgzsl.schemas.event import Event, Ours
from stream_cgzsl.schemas.fields import Count, Fraction, Name, Number, Sha256

EXAMPLE_BUCKETS = ("0", "1-2", "3-5", "6-20", ">20")
"""Classes by how many examples they have had: the keys of `Evaluation.by_examples`."""


class Evaluation(Event, Ours):
    """Per-class mean accuracies of one generation over the holdout up to its ledger record's cut.

    `harmonic` is the harmonic mean of `seen` and `unseen`. `best` is the best accuracy of every seen class since it was
    learned, this evaluation included; `forgetting` is how far seen classes are below their best, on average. `area` is
    the area under the curve of seen against unseen accuracy. `movement` is the drift of each class's projection: the
    angle in radians to the previous generation. `by_examples` is the accuracy by number of examples of a class: "0",
    "1-2", "3-5", "6-20" and ">20", without groups that have no tested class; empty if the projections do not say.
    """

    TYPE: ClassVar[str] = "cgzsl.evaluation"
    KEY: ClassVar[str | None] = "generation"

    generation: Count
    digest: Sha256
    samples: Count
    seen: Fraction | None = None
    unseen: Fraction | None = None
    harmonic: Fraction | None = None
    forgetting: Fraction | None = None
    area: Fraction | None = None
    per_class: dict[Name, Fraction] = Field(default_factory=dict)
    best: dict[Name, Fraction] = Field(default_factory=dict)
    movement: dict[Name, Number] = Field(default_factory=dict)
    by_examples: dict[Name, Fraction] = Field(default_factory=dict)


def harmonic_mean(seen: float | None, unseen: float | None) -> float | None:
    """None unless both are known. Every harmonic accuracy in this package is computed here."""
    if seen is None or unseen is None:
        return None
    return 2 * seen * unseen / (seen + unseen) if seen + unseen else 0.0
