"""windows: the ledger, one record per window. Window n makes generation n; record 0 is the genesis."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from stream_cgzsl.schemas.event import Event, Ours
from stream_cgzsl.schemas.fields import (
    Blob,
    Count,
    Flag,
    Fraction,
    JsonObject,
    Name,
    Number,
    Partition,
    Positive,
    Sha256,
    Text,
    Whole,
)

Kind = Literal["genesis", "train", "describe", "failed", "rollback"]

POLICIES = (
    "marker",
    "describe",
    "count",
    "event-time",
    "max-age",
    "rollback",
    "rebuild",
    "accept-loss",
    "dead-letters",
    "snapshot",
)
"""What can close a window."""


class Genesis(Ours):
    """What never changes in a stream. `shared`: attributes are in the feature space (None: detect it)."""

    attributes: Positive
    features: Positive
    signed: Flag
    shared: Flag | None = None
    seed: Whole = 0


class Range(Ours):
    """The records [start, end) of one partition, counted by outcome.

    `lost` counts offsets right before `start` that had expired unread and whose loss was accepted.
    """

    start: Count
    end: Count
    lost: Count = 0
    accepted: Count = 0
    duplicate: Count = 0
    late: Count = 0
    dead: dict[Name, Count] = Field(default_factory=dict)


class Published(Ours):
    """Where a part of the commit is: `count` records at offsets [first, end) of partition 0, and their digest."""

    first: Count
    end: Count
    count: Count
    sha256: Sha256


class Update(Ours):
    """A generation that is published as what it changes of the one before, `base`.

    The last one that was published whole is `whole`. What was published from then on, at offsets [first, end) of the
    projections, is this generation where later records win; `rows` of it came after the whole one.
    """

    base: Count
    whole: Count
    first: Count
    end: Count
    rows: Count


class EncoderLayer(Ours):
    """One layer of an encoder: activation(weights x + bias)."""

    outputs: Positive
    inputs: Positive
    activation: Name


class Serving(Ours):
    """What a scorer needs besides the projections. All of it is covered by the generation's digest.

    `incremental`: the digest combines digests of rows, and the next generation may be published as an update.
    `encoder`: what samples go through before they are compared; its numbers are where `LedgerRecord.encoder` says.
    """

    servable: Flag
    metric: Name
    transform: Name
    centre: Blob
    calibration: JsonObject = Field(default_factory=dict)
    incremental: Flag = False
    encoder: tuple[EncoderLayer, ...] = ()


class Prequential(Ours):
    """How the previous generation classified this window's features before they were learned: per-class means.

    `seen` and `unseen` are the classes that were so in that generation; classes it did not know are in neither. `rows`
    features were classified, the same ones in every replay.
    """

    rows: Count
    seen: Fraction | None = None
    unseen: Fraction | None = None


class LedgerRecord(Event, Ours):
    """One window: its inputs, its result, and where the result is.

    `policy` is what closed the window, `reason` is for people; records of older versions have no `policy`. `ranges` is
    per role (attributes, features, control) and partition. The genesis has the bus's ids of topics in `topic_ids`, per
    role, where it knows any. `inputs` is the sha256 of the accepted inputs in training
    order. `configuration` is here if it changed; its digest always is. With `update`, `projections` are only what
    changed. `to` is the generation that a rollback restored, `losses` the last value of each loss term in training,
    `until_ms` the end of an event-time window.

    `configured` is the number of the record that has this window's configuration, `late_ms` the event time that the
    windows before it reached to: so the newest record is enough to go on from. `remembered` is how many windows back
    the ids of records count once; only windows with such ids are counted. Older versions wrote none of these, and
    counted every window.
    """

    TYPE: ClassVar[str] = "cgzsl.window"
    KEY: ClassVar[str | None] = "number"

    number: Count
    kind: Kind
    policy: Name | None = None
    reason: Name
    genesis: Genesis | None = None
    topic_ids: dict[Name, Name] = Field(default_factory=dict)
    ranges: dict[Name, dict[Partition, Range]] = Field(default_factory=dict)
    holdout: dict[Partition, Count] = Field(default_factory=dict)
    inputs: Sha256 | None = None
    configuration: JsonObject | None = None
    configuration_digest: Sha256
    code: Name
    environment: JsonObject = Field(default_factory=dict)
    seen: Count = 0
    unseen: Count = 0
    generation: Sha256 | None = None
    serving: Serving | None = None
    projections: Published | None = None
    update: Update | None = None
    encoder: Published | None = None
    state: Published | None = None
    prequential: Prequential | None = None
    losses: dict[Name, Number] = Field(default_factory=dict)
    error: Text | None = None
    to: Count | None = None
    until_ms: Count | None = None
    configured: Count | None = None
    late_ms: Count | None = None
    remembered: Count | None = None

    @property
    def closed_by(self) -> str:
        """The policy that closed the window. In older records the reason is the policy, unless a person gave one."""
        if self.policy is not None:
            return self.policy
        if self.reason in POLICIES:
            return self.reason
        return "rollback" if self.kind == "rollback" else "marker"
