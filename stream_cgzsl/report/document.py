"""Everything a report shows, as one value that is written to `report.json` and read back.

Accuracies, forgetting and areas are in percent. Only windows that trained are listed; `number` is the ledger's.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from stream_cgzsl.schemas.event import Model


class Figures(Model):
    """Mean seen, unseen and harmonic accuracy over the windows of a run; None where a setting has no such figure."""

    mSA: float | None
    mUA: float | None
    mH: float | None

    @property
    def values(self) -> tuple[float | None, float | None, float | None]:
        return self.mSA, self.mUA, self.mH


class WindowLine(Model):
    """One window of a run: its inputs, the accuracy of its generation, and the cost of training."""

    number: int
    described: int
    features: int
    seen: int
    unseen: int
    digest: str
    seen_accuracy: float | None  # as of this window, on all classes known by then
    unseen_accuracy: float | None
    harmonic: float | None
    recalculated_seen: float | None  # the final model on this window's label space
    recalculated_unseen: float | None
    recalculated_harmonic: float | None
    prequential_seen: float | None
    prequential_unseen: float | None
    forgetting: float | None
    area: float | None
    overall: float | None = None  # over all classes known by then
    by_examples: dict[str, float] = Field(default_factory=dict)  # by how many examples they have had
    losses: dict[str, float] = Field(default_factory=dict)
    replay_kept: int | None = None
    replay_rejected: int | None = None
    seconds_training: float


class PaperRow(Model):
    """A system of the paper's table for the same data set and setting."""

    system: str
    figures: Figures


class CurvePoint(Model):
    seen: float
    unseen: float


class Similar(Model):
    class_id: str
    similarity: float
    seen: bool


class Neighbours(Model):
    """The projections that are most similar to an unseen class's mean test feature in one window, best first."""

    window: int
    top: tuple[Similar, ...]


class SimilarityPanel(Model):
    """One unseen class over the windows; `learned_in` is the window with its first features, if there is one."""

    class_id: str
    learned_in: int | None
    windows: tuple[Neighbours, ...]


class MapPoint(Model):
    """A feature in the plane of the two principal components; `class_index` is an index into `FeatureMap.class_ids`."""

    x: float
    y: float
    class_index: int
    replayed: bool


NOT_ZERO_SHOT = {
    "static": "mUA is not zero-shot there: the last generation has trained on the classes that were unseen then.",
    "online": "mUA is zero-shot in part: the last generation has trained on some of the classes that were unseen then.",
}
"""What to say of recalculated accuracies on unseen classes, by setting."""
NOT_ZERO_SHOT["trickle"] = NOT_ZERO_SHOT["online"]


class FeatureMap(Model):
    class_ids: tuple[str, ...]
    points: tuple[MapPoint, ...]


class RunDocument(Model):
    kind: Literal["run"] = "run"
    title: str
    dataset: str
    extractor: str
    setting: str
    learner: str
    seed: int
    command: str
    bus: str
    settings: dict[str, Any]
    environment: dict[str, Any]
    paper_extractor: str = "ResNet-101"
    paper: tuple[PaperRow, ...] = ()
    as_of: Figures
    recalculated: Figures
    forgetting: float | None
    task_forgetting: float | None = None  # by task, and negative where tasks gained
    paper_forgetting: float | None = None  # of the paper's own system, which does not say how it is measured
    area: float | None
    overall: float | None = None
    by_examples: dict[str, float] = Field(default_factory=dict)
    windows: tuple[WindowLine, ...]
    curve: tuple[CurvePoint, ...] = ()  # of the last generation
    curve_point: CurvePoint | None = None  # where the learned offset is
    similarities: tuple[SimilarityPanel, ...] = ()
    map: FeatureMap | None = None
    seconds_training: float
    seconds_total: float


class StudyRow(Model):
    """One row of a study's table. Deviations are over seeds; None if there was only one run."""

    label: str
    runs: int
    as_of: Figures
    deviation: Figures | None = None
    recalculated: Figures
    forgetting: float | None = None
    area: float | None = None
    overall: float | None = None
    by_examples: dict[str, float] = Field(default_factory=dict)
    paper: Figures | None = None
    x: float | None = None  # its value on the sweep's axis, if the study is a sweep
    seconds: float
    settings: dict[str, Any] = Field(default_factory=dict)
    digest: str | None = None


class Shot(Model):
    """Mean per-class accuracies after k examples each of some classes, in percent."""

    k: int
    seen: float  # of the classes that were learned before
    given: float  # of the classes with k examples
    rest: float  # of the classes that are still unseen


class FewShotCurve(Model):
    """One learner in a few-shot study, mean over its draws. The library alone: no stream is involved."""

    learner: str
    shots: tuple[Shot, ...]
    seconds: float


class StudyDocument(Model):
    kind: Literal["study"] = "study"
    study: str
    title: str
    question: str
    dataset: str
    extractor: str
    setting: str
    command: str
    environment: dict[str, Any]
    paper_extractor: str = "ResNet-101"
    x_label: str | None = None
    rows: tuple[StudyRow, ...] = ()
    draws: int | None = None  # of a few-shot study, which has curves instead of rows
    curves: tuple[FewShotCurve, ...] = ()
