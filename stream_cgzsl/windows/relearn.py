"""What if: the same windows under another configuration, to another prefix or nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from stream_cgzsl.bus import Bus, Publisher
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import environment
from stream_cgzsl.evaluation.prequential import prequential
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.interface import Losses
from stream_cgzsl.lineage import Configuration, Lineage, Outcome
from stream_cgzsl.schemas import LedgerRecord, Message
from stream_cgzsl.windows.commit import Commit, publish
from stream_cgzsl.windows.dead_letters import read
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.restore import Restorer, genesis_of, reconfigured

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
    """Every window of the ledger, learned from its ranges under `configuration`; windows that failed are tried again.

    With `into`, each is committed to that stream's topics as its learner would have; its ledger must be empty.
    """
    genesis = genesis_of(records)
    restorer = Restorer(bus, topics, records, device, alive, rebuild=True)
    targets = {record.to for record in records if record.to is not None}
    kept: dict[int, bytes] = {}
    lineage = Lineage(genesis, configuration, device)
    generation: Generation | None = None
    if into is not None:
        publish(*into, Commit(records[0].model_copy(update=_configuration_of(lineage, None))))
    for record in records[1 : None if until is None else until + 1]:
        alive()
        before = lineage.configuration
        gathered: Gathered | None = None
        losses = Losses()
        if record.to is not None:
            live = lineage.live
            lineage = Lineage(genesis, configuration, device)
            lineage.restore(kept[record.to])
            outcome = replace(lineage.roll(record.number), withdrawn=tuple(sorted(live - lineage.live)))
        else:
            lineage = reconfigured(lineage, genesis, configuration, device)
            gathered = restorer.gather(lineage, record, configuration)
            outcome = lineage.apply("train" if record.kind == "failed" else record.kind, gathered, losses)
        if record.number in targets:
            kept[record.number] = lineage.snapshot()
        if into is not None:
            changes = _configuration_of(lineage, before) | {
                "environment": environment(device),
                "prequential": None if gathered is None else prequential(generation, gathered.window),
                "losses": losses.last(),
            }
            dead = [*_control_letters(bus, topics, record), *(gathered.dead if gathered is not None else ())]
            _commit(*into, record.model_copy(update=changes), lineage, outcome, dead)
        generation = outcome.generation
        yield Relearned(record.number, outcome.kind, outcome.generation, outcome.error)


def _configuration_of(lineage: Lineage, before: Configuration | None) -> dict[str, object]:
    """What a ledger record says of the configuration."""
    now = lineage.configuration
    return {"configuration": None if now == before else now.document(), "configuration_digest": now.digest}


def _control_letters(bus: Bus, topics: Topics, record: LedgerRecord) -> list[Message]:
    """The dead letters of a window's control records, as they are: no policy runs here that could judge them again."""
    span = record.ranges["control"][0]
    if not span.dead:
        return []
    return [
        item.message
        for item in read(bus, topics)
        if item.letter.topic == topics["control"] and span.start <= item.letter.offset < span.end
    ]


def _commit(
    publisher: Publisher, topics: Topics, record: LedgerRecord, lineage: Lineage, outcome: Outcome, dead: list[Message]
) -> None:
    generation = outcome.generation
    changes = {
        "kind": outcome.kind,
        "error": outcome.error,
        "seen": int(generation.seen.sum()),
        "unseen": int((~generation.seen).sum()),
        "state": None,
    }
    again = record.model_copy(update=changes)
    publish(publisher, topics, Commit(again, generation, lineage.names, outcome.withdrawn, lineage.snapshot(), dead))
