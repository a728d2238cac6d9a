"""Becoming the learner that wrote the ledger: its last snapshot, then the windows since, trained again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

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

    With `rebuild`, snapshots are ignored. A digest that differs is refused, or only told: with `rebuild`, or when not
    `strict`.
    """

    bus: Bus
    topics: Topics
    records: list[LedgerRecord]
    device: str
    alive: Callable[[], None] = lambda: None
    rebuild: bool = False
    strict: bool = True
    _passed: dict[int, bytes] = field(default_factory=dict)  # what later rollbacks go back to

    def at(self, number: int) -> Lineage:
        """The lineage after window `number`.

        Raises `BrokenLedger` when a window trained again does not give the digest the ledger has, and `Expired` when
        its records are gone.
        """
        base, lineage = self._base(number)
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
        if record.to is not None:
            return self.roll(record)
        lineage = self.configured(lineage, record.number)
        if gathered is None:
            gathered = self.gather(lineage, record)
        generation = lineage.apply(record.kind, gathered).generation
        self.keep(lineage)
        return lineage, generation

    def roll(self, record: LedgerRecord) -> tuple[Lineage, Generation]:
        """A rollback once more. It does not follow from the window before it."""
        assert record.to is not None
        lineage = self.configured(self.at(record.to), record.number)
        generation = lineage.roll(record.number).generation
        self.keep(lineage)
        return lineage, generation

    def keep(self, lineage: Lineage) -> None:
        """Remembers a lineage that a later rollback goes back to; any other is let go."""
        if any(later.to == lineage.number for later in self.records[lineage.number :]):
            self._passed[lineage.number] = lineage.snapshot()

    def configured(self, lineage: Lineage, number: int) -> Lineage:
        """The lineage under the configuration that window `number` was learned with."""
        return reconfigured(lineage, genesis_of(self.records), configuration_at(self.records, number), self.device)

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
            gone = ", ".join(expired_ranges(self.bus, self.topics, record)) or str(error)
            raise Expired(f"window {record.number} cannot be trained again: {gone}") from error

    def _base(self, number: int) -> tuple[int, Lineage]:
        """Where to begin: the newest whole snapshot at or before window `number`, or the beginning."""
        for record in reversed(self.records[1 : number + 1]):
            if record.number in self._passed:
                lineage = self._fresh(record.number)
                lineage.restore(self._passed[record.number])
                return record.number, lineage
            if record.state is not None and not self.rebuild:
                try:
                    return record.number, self.snapshot_of(record)
                except Incomplete as reason:
                    log.info("the snapshot of window %d is gone (%s); trying an older one", record.number, reason)
        return 0, self._fresh(0)

    def snapshot_of(self, record: LedgerRecord) -> Lineage:
        """The lineage as window `record` left it, from its own snapshot. Raises `Incomplete` when that is gone."""
        lineage = self._fresh(record.number)
        lineage.restore(load_state(self.bus, self.topics, record))
        return lineage

    def _fresh(self, number: int) -> Lineage:
        return Lineage(genesis_of(self.records), configuration_at(self.records, number), self.device)

    def _differs(self, record: LedgerRecord, digest: str) -> None:
        text = (
            f"{self.bus.url}: window {record.number}, trained again, gave generation {digest[:12]} and the ledger has "
            f"{(record.generation or 'nothing')[:12]}; it was made with {record.environment}"
        )
        if self.strict and not self.rebuild:
            raise BrokenLedger(f"{text}. Start in that environment, or accept the new result with: learn --rebuild")
        log.warning("%s", text)


def reconfigured(lineage: Lineage, genesis: Genesis, configuration: Configuration, device: str) -> Lineage:
    """The same knowledge under another configuration. Raises `UsageError` where a learner cannot take it over."""
    if lineage.configuration == configuration:
        return lineage
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


def expired_ranges(bus: Bus, topics: Topics, record: LedgerRecord) -> list[str]:
    """What of a window's input is no longer there, such as `features/2 [10,25) expired`."""
    return [
        f"{role}/{partition} [{span.start},{min(span.end, begins[partition])}) expired"
        for role in ("attributes", "features")
        for begins in [bus.begin_offsets(topics[role])]
        for partition, span in record.ranges.get(role, {}).items()
        if span.start < min(span.end, begins.get(partition, 0))
    ]


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
