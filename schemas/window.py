"""windows: the ledger, one record a window. Window n makes generation n; record 0 is the genesis."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from stream_cgzsl.schemas.event import Event, Part
from stream_cgzsl.schemas.fields import (
    Blob,
    Count,
    Facts,
    Flag,
    Name,
    Number,
    Partition,
    Positive,
    Sha256,
    Share,
    Text,
    Whole,
)

Kind = Literal["genesis", "train", "describe", "failed", "rollback"]


class Genesis(Part):
    """What can never change in a stream. `shared`: attributes live in the feature space (None: find out)."""

    attributes: Positive
    features: Positive
    signed: Flag
    shared: Flag | None = None
    seed: Whole = 0


class Range(Part):
    """The records [start, end) of one partition, and what became of them.

    `lost` counts offsets right before `start` that had expired unread and were given up on purpose.
    """

    start: Count
    end: Count
    lost: Count = 0
    accepted: Count = 0
    duplicate: Count = 0
    late: Count = 0
    dead: dict[Name, Count] = Field(default_factory=dict)


class Published(Part):
    """Where a part of the commit stands: offsets [first, end) of partition 0, `count` records, their digest."""

    first: Count
    end: Count
    count: Count
    sha256: Sha256


class Serving(Part):
    """What a scorer needs besides the projections; all of it is inside the generation's digest."""

    servable: Flag
    metric: Name
    transform: Name
    centre: Blob
    calibration: Facts = Field(default_factory=dict)


class Prequential(Part):
    """How the generation before classified this window's features before they were learned: per-class mean accuracies.

    `seen` is of classes that were learned by then, `unseen` of classes that were only described. Classes nobody had
    described are in neither. `rows` features were looked at, the same ones in every replay.
    """

    rows: Count
    seen: Share | None = None
    unseen: Share | None = None


class LedgerRecord(Event):
    """One window: what went in, what came out, and where the result stands.

    `ranges` is per role (attributes, features, control), per partition. `inputs` is the sha256 of the accepted
    inputs in training order. `configuration` stands here when it changed; its digest always does. `to` is the
    generation a rollback went back to, `losses` the last value of each term in training, `until_ms` the event time an
    event-time window reaches to.
    """

    TYPE: ClassVar[str] = "cgzsl.window"
    KEY: ClassVar[str | None] = "number"

    number: Count
    kind: Kind
    reason: Name
    genesis: Genesis | None = None
    ranges: dict[Name, dict[Partition, Range]] = Field(default_factory=dict)
    holdout: dict[Partition, Count] = Field(default_factory=dict)
    inputs: Sha256 | None = None
    configuration: Facts | None = None
    configuration_digest: Sha256
    code: Name
    environment: Facts = Field(default_factory=dict)
    seen: Count = 0
    unseen: Count = 0
    generation: Sha256 | None = None
    serving: Serving | None = None
    projections: Published | None = None
    state: Published | None = None
    prequential: Prequential | None = None
    losses: dict[Name, Number] = Field(default_factory=dict)
    error: Text | None = None
    to: Count | None = None
    until_ms: Count | None = None
