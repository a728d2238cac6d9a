"""windows: the ledger, one record a window. Window n makes generation n; record 0 is the genesis."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from stream_cgzsl.schemas.event import Blob, Event, Name, Part, Sha256

Kind = Literal["genesis", "train", "describe", "failed", "rollback"]


class Genesis(Part):
    """What can never change in a stream. `shared`: attributes live in the feature space (None: find out)."""

    attributes: PositiveInt
    features: PositiveInt
    signed: bool
    shared: bool | None = None
    seed: int = 0


class Range(Part):
    """The records [start, end) of one partition, and what became of them."""

    start: NonNegativeInt
    end: NonNegativeInt
    accepted: NonNegativeInt = 0
    duplicate: NonNegativeInt = 0
    late: NonNegativeInt = 0
    dead: dict[Name, NonNegativeInt] = {}


class Published(Part):
    """Where a part of the commit stands: offsets [first, end) of partition 0, `count` records, their digest."""

    first: NonNegativeInt
    end: NonNegativeInt
    count: NonNegativeInt
    sha256: Sha256


class Serving(Part):
    """What a scorer needs besides the projections; all of it is inside the generation's digest."""

    servable: bool
    metric: Name
    transform: Name
    centre: Blob
    calibration: dict[Name, Any] = {}


class LedgerRecord(Event):
    """One window: what went in, what came out, and where the result stands.

    `ranges` is per role (attributes, features, control), per partition. `inputs` is the sha256 of the accepted
    inputs in training order. `configuration` stands here when it changed; its digest always does.
    """

    TYPE: ClassVar[str] = "cgzsl.window"
    KEY: ClassVar[str | None] = "number"

    number: NonNegativeInt
    kind: Kind
    reason: Name
    genesis: Genesis | None = None
    ranges: dict[Name, dict[NonNegativeInt, Range]] = {}
    holdout: dict[NonNegativeInt, NonNegativeInt] = {}
    inputs: Sha256 | None = None
    configuration: dict[str, Any] | None = None
    configuration_digest: Sha256
    code: Name
    environment: dict[str, Any] = {}
    seen: NonNegativeInt = 0
    unseen: NonNegativeInt = 0
    generation: Sha256 | None = None
    serving: Serving | None = None
    projections: Published | None = None
    state: Published | None = None
    error: str | None = None
