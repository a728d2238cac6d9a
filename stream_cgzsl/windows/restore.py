"""Becoming the learner that wrote the ledger: its last snapshot, then the windows since, trained again."""

from __future__ import annotations

import logging
from collections.abc import Callable

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, UsageError
from stream_cgzsl.lineage import Configuration, Lineage
from stream_cgzsl.schemas import Genesis, LedgerRecord
from stream_cgzsl.windows.gather import Ends, Gathered, Gatherer
from stream_cgzsl.windows.ledger import Incomplete, load_state

log = logging.getLogger(__name__)


def restore(bus: Bus, topics: Topics, records: list[LedgerRecord], device: str, alive: Callable[[], None]) -> Lineage:
    """The lineage after the last record. `alive` is called between windows and may raise to stop.

    Raises `BrokenLedger` when a window trained again does not give the digest the ledger has, and `Expired` when its
    records are gone.
    """
    genesis, base = genesis_of(records), 0
    lineage = Lineage(genesis, configuration_at(records, 0), device)
    for record in reversed(records):
        if record.state is not None:
            try:
                data = load_state(bus, topics, record)
            except Incomplete as reason:
                log.warning("the snapshot of window %d is not whole (%s); trying an older one", record.number, reason)
                continue
            lineage = Lineage(genesis, configuration_at(records, record.number), device)
            lineage.restore(data)
            base = record.number
            break
    for record in records[base + 1 :]:
        alive()
        configuration = configuration_at(records, record.number)
        if record.configuration is not None:
            lineage = reconfigured(lineage, genesis, configuration, device)
        gathered = gather_again(bus, topics, records, record, lineage, alive)
        digest = lineage.apply(record.kind, gathered).generation.digest
        log.info("window %d trained again: %s", record.number, digest[:12])
        if digest != record.generation:
            raise BrokenLedger(
                f"{bus.url}: window {record.number}, trained again, gave {digest[:12]} and the ledger has "
                f"{(record.generation or 'nothing')[:12]}; the environment has changed since (ledger: "
                f"{record.environment}): start where it was, or with --rebuild accept a new line of generations"
            )
    return lineage


def gather_again(
    bus: Bus,
    topics: Topics,
    records: list[LedgerRecord],
    record: LedgerRecord,
    lineage: Lineage,
    alive: Callable[[], None] = lambda: None,
) -> Gathered:
    """The window of a ledger record, read again from its ranges."""
    configuration = configuration_at(records, record.number)
    gatherer = Gatherer(bus, topics, genesis_of(records), configuration.memory_bytes)
    starts = {role: {p: span.start for p, span in record.ranges[role].items()} for role in ("attributes", "features")}
    return gatherer.gather(record.number, starts, ends_of(record), lineage.live, lineage.known_ids, alive)


def reconfigured(lineage: Lineage, genesis: Genesis, configuration: Configuration, device: str) -> Lineage:
    """The same knowledge under another configuration. Raises `UsageError` where a learner cannot take it over."""
    fresh = Lineage(genesis, configuration, device)
    if lineage.number:
        try:
            fresh.restore(lineage.snapshot())
        except ValueError as error:
            raise UsageError(
                f"this stream has been learned with other settings, and {configuration.learner!r} with "
                f"{dict(configuration.options)} cannot go on from there: {error}; go back to the old settings, or learn "
                "the topics anew under another --prefix"
            ) from error
    return fresh


def genesis_of(records: list[LedgerRecord]) -> Genesis:
    genesis = records[0].genesis
    if genesis is None:
        raise BrokenLedger("the ledger's record 0 is not a genesis; restore the topic from a copy")
    return genesis


def configuration_at(records: list[LedgerRecord], number: int) -> Configuration:
    """The configuration window `number` was learned with: the last one written at or before it."""
    for record in reversed(records[: number + 1]):
        if record.configuration is not None:
            return Configuration(**record.configuration)
    raise BrokenLedger("no record of the ledger holds a configuration; restore the topic from a copy")


def ends_of(record: LedgerRecord) -> Ends:
    """Where a window ended, which is where the next one starts."""
    ends = {role: {p: span.end for p, span in spans.items()} for role, spans in record.ranges.items()}
    ends["holdout"] = dict(record.holdout)
    return ends
