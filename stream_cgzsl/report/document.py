"""Everything a report shows, as one value that is written to `report.json` and read back. The page adds nothing to it.

Accuracies, forgetting and areas are in percent. Windows are those that trained; `number` is the ledger's.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Piece(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Figures(Piece):
    """mSA, mUA and mH of one reading of a run; None where a setting has no such figure."""

    mSA: float | None
    mUA: float | None
    mH: float | None


class WindowLine(Piece):
    """One window of a run: what it brought, how good its generation is, and what training cost."""

    number: int
    described: int
    features: int
    seen: int
    unseen: int
    digest: str
    seen_accuracy: float | None  # as of this window, on everything known by then
    unseen_accuracy: float | None
    harmonic: float | None
    recalculated_seen: float | None  # the final model on this window's label space
    recalculated_unseen: float | None
    recalculated_harmonic: float | None
    prequential_seen: float | None
    prequential_unseen: float | None
    forgetting: float | None
    area: float | None
    losses: dict[str, float] = Field(default_factory=dict)
    replay_kept: int | None = None
    replay_rejected: int | None = None
    seconds_training: float


class PaperRow(Piece):
    """A system of the paper's table for the same data set and setting."""

    system: str
    figures: Figures


class CurvePoint(Piece):
    seen: float
    unseen: float


class Similar(Piece):
    class_id: str
    similarity: float
    seen: bool


class Neighbours(Piece):
    """Which projections an unseen class's mean test feature is most similar to, in one window, best first."""

    window: int
    top: tuple[Similar, ...]


class SimilarityPanel(Piece):
    """One unseen class over the windows; `learned_in` is the window that brought its first features, if any did."""

    class_id: str
    learned_in: int | None
    windows: tuple[Neighbours, ...]


class MapPoint(Piece):
    """A feature in the plane of the two strongest directions; `class_index` points into `FeatureMap.class_ids`."""

    x: float
    y: float
    class_index: int
    replayed: bool


class FeatureMap(Piece):
    class_ids: tuple[str, ...]
    points: tuple[MapPoint, ...]


class RunDocument(Piece):
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
    area: float | None
    windows: tuple[WindowLine, ...]
    curve: tuple[CurvePoint, ...] = ()  # of the last generation
    curve_point: CurvePoint | None = None  # where the learned offset stands
    similarities: tuple[SimilarityPanel, ...] = ()
    map: FeatureMap | None = None
    seconds_training: float
    seconds_total: float


class StudyRow(Piece):
    """One line of a study's table. Deviations are over seeds; None where there was one run."""

    label: str
    runs: int
    as_of: Figures
    deviation: Figures | None = None
    recalculated: Figures
    forgetting: float | None = None
    area: float | None = None
    paper: Figures | None = None
    x: float | None = None  # where the row stands on the sweep's axis, if the study is a sweep
    seconds: float
    settings: dict[str, Any] = Field(default_factory=dict)
    digest: str | None = None


class StudyDocument(Piece):
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
    rows: tuple[StudyRow, ...]
