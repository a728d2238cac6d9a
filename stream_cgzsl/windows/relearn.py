"""What if: the same windows under another configuration, to another prefix or nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from stream_cgzsl.bus import Bus, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import environment
from stream_cgzsl.generation import Generation
from stream_cgzsl.lineage import Configuration, Lineage, Outcome
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.windows.commit import Commit, publish
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.restore import Restorer, genesis_of

INPUT_ROLES = ("attributes", "features", "control", "holdout")


@dataclass(frozen=True)
class Relearned:
    number: int
    kind: str
    generation: Generation
    error: str | None


def beside(topics: Topics, prefix: str) -> Topics:
    """A stream of another prefix that learns from the same input topics."""
    return replace(topics, prefix=prefix, names={**topics.names, **{role: topics[role] for role in INPUT_ROLES}})


def relearn(
    bus: Bus,
    topics: Topics,
    records: list[LedgerRecord],
    configuration: Configuration,
    device: str,
    until: int | None = None,
    into: tuple[Publisher, Topics] | None = None,
    alive: Callable[[], None] = lambda: None,
) -> Iterator[Relearned]:
    """Every window of the ledger, learned from its ranges under `configuration`.

    With `into`, each is committed to that stream's topics as its learner would have; its ledger must be empty.
    """
    restorer = Restorer(bus, topics, records, device, alive, rebuild=True)
    targets = {record.to for record in records if record.to is not None}
    kept: dict[int, bytes] = {}
    lineage = Lineage(genesis_of(records), configuration, device)
    if into is not None:
        first = records[0].model_copy(
            update={"configuration": configuration.document(), "configuration_digest": configuration.digest}
        )
        publish(*into, Commit(first))
    for record in records[1 : None if until is None else until + 1]:
        alive()
        gathered: Gathered | None = None
        if record.to is not None:
            before = lineage.live
            lineage = Lineage(genesis_of(records), configuration, device)
            lineage.restore(kept[record.to])
            outcome = replace(lineage.roll(record.number), withdrawn=tuple(before - lineage.live))
        else:
            gathered = restorer.gather(lineage, record, configuration)
            outcome = lineage.apply("train" if record.kind == "failed" else record.kind, gathered)
        if record.number in targets:
            kept[record.number] = lineage.snapshot()
        if into is not None:
            _commit(*into, record, gathered, lineage, outcome, configuration, device)
        yield Relearned(record.number, outcome.kind, outcome.generation, outcome.error)


def _commit(
    publisher: Publisher,
    topics: Topics,
    record: LedgerRecord,
    gathered: Gathered | None,
    lineage: Lineage,
    outcome: Outcome,
    configuration: Configuration,
    device: str,
) -> None:
    changes = {
        "kind": outcome.kind,
        "error": outcome.error,
        "configuration": None,
        "configuration_digest": configuration.digest,
        "environment": environment(device),
        "seen": int(outcome.generation.seen.sum()),
        "unseen": int((~outcome.generation.seen).sum()),
        "state": None,
    }
    dead = () if gathered is None else gathered.dead
    again = record.model_copy(update=changes)
    publish(
        publisher, topics, Commit(again, outcome.generation, lineage.names, outcome.withdrawn, lineage.snapshot(), dead)
    )
