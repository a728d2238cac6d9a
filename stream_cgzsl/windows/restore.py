"""Becoming the learner that wrote the ledger: its last snapshot, then the windows since, trained again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Expired, UsageError
from stream_cgzsl.generation import Generation
from stream_cgzsl.lineage import Configuration, Lineage
from stream_cgzsl.schemas import Genesis, LedgerRecord
from stream_cgzsl.windows.gather import Ends, Gathered, Gatherer
from stream_cgzsl.windows.ledger import Incomplete, load_state

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Restorer:
    """Rebuilds lineages from a ledger. `alive` is called often and may raise to stop.

    With `rebuild`, snapshots are ignored and a digest that differs is told, not refused.
    """

    bus: Bus
    topics: Topics
    records: list[LedgerRecord]
    device: str
    alive: Callable[[], None] = lambda: None
    rebuild: bool = False

    def at(self, number: int) -> Lineage:
        """The lineage after window `number`.

        Raises `BrokenLedger` when a window trained again does not give the digest the ledger has, and `Expired` when
        its records are gone.
        """
        base, lineage = self._from_snapshot(number)
        for record in self.records[base + 1 : number + 1]:
            self.alive()
            lineage, generation = self.step(lineage, record)
            digest = generation.digest
            log.info("window %d trained again: %s", record.number, digest[:12])
            if digest != record.generation:
                self._differs(record, digest)
        return lineage

    def step(
        self, lineage: Lineage, record: LedgerRecord, gathered: Gathered | None = None
    ) -> tuple[Lineage, Generation]:
        """One window of the ledger once more: the lineage after it, and its generation."""
        if record.kind == "rollback":
            assert record.to is not None
            lineage = self.at(record.to)
            return lineage, lineage.roll(record.number).generation
        configuration = configuration_at(self.records, record.number)
        if record.configuration is not None:
            lineage = reconfigured(lineage, genesis_of(self.records), configuration, self.device)
        if gathered is None:
            gathered = self.gather(lineage, record)
        kind = "describe" if record.kind == "failed" else record.kind
        return lineage, lineage.apply(kind, gathered).generation

    def gather(self, lineage: Lineage, record: LedgerRecord, configuration: Configuration | None = None) -> Gathered:
        """The window of a ledger record, read again from its ranges; under its own configuration unless one is given."""
        configuration = configuration or configuration_at(self.records, record.number)
        gatherer = Gatherer(self.bus, self.topics, genesis_of(self.records), configuration.memory_bytes)
        starts = {
            role: {p: span.start for p, span in record.ranges[role].items()} for role in ("attributes", "features")
        }
        try:
            return gatherer.gather(
                record.number,
                starts,
                ends_of(record),
                lineage.live,
                lineage.known_ids,
                self.alive,
                late_before_of(self.records, record.number),
            )
        except Expired as error:
            raise Expired(f"window {record.number} cannot be trained again: {error}") from error

    def _from_snapshot(self, number: int) -> tuple[int, Lineage]:
        """The newest whole snapshot at or before window `number`, or the beginning."""
        for record in reversed([] if self.rebuild else self.records[: number + 1]):
            if record.state is not None:
                try:
                    return record.number, self.snapshot_of(record)
                except Incomplete as reason:
                    log.info("the snapshot of window %d is gone (%s); trying an older one", record.number, reason)
        return 0, Lineage(genesis_of(self.records), configuration_at(self.records, 0), self.device)

    def snapshot_of(self, record: LedgerRecord) -> Lineage:
        """The lineage as window `record` left it, from its own snapshot. Raises `Incomplete` when that is gone."""
        lineage = Lineage(genesis_of(self.records), configuration_at(self.records, record.number), self.device)
        lineage.restore(load_state(self.bus, self.topics, record))
        return lineage

    def _differs(self, record: LedgerRecord, digest: str) -> None:
        text = (
            f"{self.bus.url}: window {record.number}, trained again, gave generation {digest[:12]} and the ledger has "
            f"{(record.generation or 'nothing')[:12]}; it was made with {record.environment}"
        )
        if not self.rebuild:
            raise BrokenLedger(f"{text}. Start in that environment, or accept the new result with: learn --rebuild")
        log.warning("%s", text)


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


def late_before_of(records: list[LedgerRecord], number: int) -> int | None:
    """The event time that windows before `number` reached to: older features are late."""
    return next((r.until_ms for r in reversed(records[:number]) if r.until_ms is not None), None)


def ends_of(record: LedgerRecord) -> Ends:
    """Where a window ended, which is where the next one starts."""
    ends = {role: {p: span.end for p, span in spans.items()} for role, spans in record.ranges.items()}
    ends["holdout"] = dict(record.holdout)
    return ends
