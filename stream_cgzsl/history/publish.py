"""Publishing a window: its ledger record completed by what the window led to, and its generation with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stream_cgzsl.bus import Bus, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.history.stream_learner import Configuration, Outcome, StreamLearner
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.schemas import Genesis, LedgerRecord, Message, Range
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.version import __version__
from stream_cgzsl.windows.commit import write_commit
from stream_cgzsl.windows.identity import topic_ids


def configuration_fields(now: Configuration, before: Configuration | None) -> dict[str, Any]:
    """What a ledger record says about the configuration: in full only where it changed, its digest always."""
    return {"configuration": None if now == before else now.document(), "configuration_digest": now.digest}


def genesis_record(
    bus: Bus, topics: Topics, genesis: Genesis, configuration: Configuration, device: str
) -> LedgerRecord:
    """Record 0: what never changes, which topics these are, and where each begins."""
    first = {
        role: {p: Range(start=begin, end=begin) for p, begin in bus.begin_offsets(topics[role]).items()}
        for role in ("attributes", "features", "control")
    }
    return LedgerRecord(
        number=0,
        kind="genesis",
        reason="genesis",
        genesis=genesis,
        topic_ids=topic_ids(bus, topics),
        ranges=first,
        holdout=bus.begin_offsets(topics["holdout"]),
        configured=0,
        code=__version__,
        environment=environment(device),
        **configuration_fields(configuration, None),
    )


def publish_window(
    publisher: Publisher,
    topics: Topics,
    record: LedgerRecord,
    learner: StreamLearner,
    outcome: Outcome,
    live_before: frozenset[str],
    state: bytes | None,
    dead: Iterable[Message],
    before: LedgerRecord | None = None,
) -> LedgerRecord:
    """Commits a window in one transaction and returns its record as written; see `write_commit` for errors.

    `record` says what went in. `learner` is the one after the window, `live_before` the classes before it: those that
    are gone are withdrawn. `before` is the record of the window before, which an update builds on.
    """
    generation = outcome.generation
    seen = int(generation.seen.sum())
    result = {"kind": outcome.kind, "error": outcome.error, "seen": seen, "unseen": len(generation.class_ids) - seen}
    record = record.model_copy(update=result)
    withdrawn = live_before - learner.live
    return write_commit(publisher, topics, commit_of(record, generation, learner.names, withdrawn, state, dead, before))
