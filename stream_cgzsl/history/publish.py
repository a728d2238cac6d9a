"""Publishing a window: its ledger record completed by what the window led to, and its generation with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stream_cgzsl.bus import Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.history.stream_learner import Configuration, Outcome, StreamLearner
from stream_cgzsl.schemas import LedgerRecord, Message
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows.commit import write_commit


def configuration_fields(now: Configuration, before: Configuration | None) -> dict[str, Any]:
    """What a ledger record says about the configuration: in full only where it changed, its digest always."""
    return {"configuration": None if now == before else now.document(), "configuration_digest": now.digest}


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
