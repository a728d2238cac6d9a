"""The topics of a stream: their purpose, their events and their retention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stream_cgzsl.schemas.attribute import Attribute, Retirement
from stream_cgzsl.schemas.control import Boundary, Rollback
from stream_cgzsl.schemas.dead_letter import DeadLetter
from stream_cgzsl.schemas.evaluation import Evaluation
from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.feature import Feature, Holdout
from stream_cgzsl.schemas.projection import EncoderChunk, Projection, Withdrawal
from stream_cgzsl.schemas.sample import Prediction, Sample
from stream_cgzsl.schemas.state import StateChunk
from stream_cgzsl.schemas.window import LedgerRecord

Cleanup = Literal["keep", "expire", "compact"]


@dataclass(frozen=True)
class Role:
    """One row of the topic table.

    `events` are the types a record may have, the default first; `tombstone` is what an empty value means. Others write
    to `input` topics, our workers to the rest. `single` topics have one partition. `cleanup` is `keep` (never expires),
    `expire` (whenever the operator likes) or `compact`.
    """

    name: str
    purpose: str
    events: tuple[type[Event], ...]
    cleanup: Cleanup
    single: bool = False
    input: bool = False
    tombstone: type[Event] | None = None


ROLES: dict[str, Role] = {
    role.name: role
    for role in (
        Role(
            "attributes",
            "Classes are described, revised and retired",
            (Attribute,),
            "keep",
            input=True,
            tombstone=Retirement,
        ),
        Role("features", "Labelled examples to learn from", (Feature,), "expire", input=True),
        Role("control", "Task boundaries and rollbacks", (Boundary, Rollback), "keep", single=True, input=True),
        Role("windows", "The ledger: one record per window", (LedgerRecord,), "keep", single=True),
        Role(
            "projections",
            "One identifier projection per class",
            (Projection, EncoderChunk),
            "compact",
            single=True,
            tombstone=Withdrawal,
        ),
        Role("state", "The learner's snapshot", (StateChunk,), "compact", single=True),
        Role("samples", "Features to classify", (Sample,), "expire", input=True),
        Role("predictions", "The answers", (Prediction,), "expire"),
        Role("holdout", "Labelled examples to test with", (Holdout,), "expire", input=True),
        Role("evaluations", "Accuracies of each generation", (Evaluation,), "keep", single=True),
        Role("dead-letters", "Records that could not be used", (DeadLetter,), "keep", single=True),
    )
}
