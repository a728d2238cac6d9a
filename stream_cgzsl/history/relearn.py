"""What if: the same windows learned under another configuration, into another stream or nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from stream_cgzsl.bus import Bus, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.evaluation.prequential import prequential
from stream_cgzsl.history.publish import configuration_fields, publish_window
from stream_cgzsl.history.restore import Restorer
from stream_cgzsl.history.stream_learner import Configuration
from stream_cgzsl.learners.interface import Losses
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.schemas import LedgerRecord, Message
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.windows.dead_letters import read
from stream_cgzsl.windows.recorded import Ledger, linked

INPUT_ROLES = ("attributes", "features", "control", "holdout")


@dataclass(frozen=True)
class Relearned:
    number: int
    kind: str
    generation: Generation
    error: str | None


def sharing_inputs(topics: Topics, prefix: str) -> Topics:
    """A stream of another prefix that learns from the same input topics."""
    return replace(topics, prefix=prefix, names={**topics.names, **{role: topics[role] for role in INPUT_ROLES}})


def relearn(
    bus: Bus,
    topics: Topics,
    ledger: Ledger,
    configuration: Configuration,
    device: str,
    until: int | None = None,
    into: tuple[Publisher, Topics] | None = None,
    alive: Callable[[], None] = lambda: None,
) -> Iterator[Relearned]:
    """Every window of the ledger, learned from its ranges under `configuration`; windows that failed are tried again.

    With `into`, each is committed to that stream's topics as its learner would have; its ledger must be empty.
    """
    restorer = Restorer(bus, topics, ledger, device, alive, rebuild=True, configuration=configuration)
    learner = restorer.at(0)
    last = ledger.last.number if until is None else min(until, ledger.last.number)
    generation: Generation | None = None
    if into is not None:
        first = ledger.record(0).model_copy(update=configuration_fields(configuration, None))
        written = write_commit(*into, Commit(first))
    restorer.expect_rollbacks(1, last)
    for record in ledger.records(1, last):
        alive()
        live, before, losses = learner.live, learner.configuration, Losses()
        gathered = restorer.gather(learner, record, letters=into is not None) if record.to is None else None
        kind = "train" if record.kind == "failed" else record.kind
        learner, outcome = restorer.apply(learner, record, gathered, losses, kind)
        if into is not None:
            changes = configuration_fields(learner.configuration, before) | {
                "environment": environment(device),
                "prequential": None if gathered is None else prequential(generation, gathered.window),
                "losses": losses.last(),
                "state": None,
                "configured": None,
            }
            dead = [*_control_letters(bus, topics, record), *(gathered.dead if gathered is not None else ())]
            copied = linked(record.model_copy(update=changes), written)
            written = publish_window(*into, copied, learner, outcome, live, learner.snapshot(), dead)
        generation = outcome.generation
        yield Relearned(record.number, outcome.kind, outcome.generation, outcome.error)


def _control_letters(bus: Bus, topics: Topics, record: LedgerRecord) -> list[Message]:
    """The dead letters of a window's control records, copied: no policy runs here that could judge them again."""
    span = record.ranges["control"][0]
    if not span.dead:
        return []
    return [
        item.message
        for item in read(bus, topics)
        if item.letter.topic == topics["control"] and span.start <= item.letter.offset < span.end
    ]
