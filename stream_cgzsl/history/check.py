"""Checking a stream: does the ledger add up, and does everything it points to exist?"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.history.restore import configuration_of
from stream_cgzsl.schemas import DeadLetter, InvalidEvent, LedgerRecord, Range, decode
from stream_cgzsl.serving.generation_io import GenerationLoader
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.identity import changed_topics
from stream_cgzsl.windows.recorded import Ledger

_ROLES = ("attributes", "features", "control")
_WINDOWS_AT_ONCE = 200
Report = Callable[[str, int, int], None]
"""Told what is being checked, how much of it is done, and of how much."""

LetterOffsets = dict[tuple[str, int], list[int]]
"""Per topic and partition, the offsets of the records that have a dead letter, in order."""


@dataclass
class Findings:
    """What was checked, and the problems found."""

    windows: int = 0
    records: int = 0
    accepted: int = 0
    duplicate: int = 0
    dead: int = 0
    lost: int = 0
    waiting: int = 0
    expired: int = 0
    generations: int = 0
    replaced: int = 0
    problems: list[str] = field(default_factory=list)


def check(
    bus: Bus, topics: Topics, alive: Callable[[], None] = lambda: None, report: Report = lambda *_: None
) -> Findings:
    """Checks that ranges of consecutive windows abut, that counts add up, that every record still on the bus is in
    exactly one window, that every invalid one has its dead letter, and that digests match. Reads every input once.
    """
    recorded = Ledger.open(bus, topics)
    if recorded is None:
        return Findings()
    findings = Findings(windows=recorded.last.number, problems=changed_topics(bus, topics, recorded))
    letters = _letter_offsets(bus, topics, findings)
    partitions = [
        _Partition(bus, topics, role, partition, letters, findings, report)
        for role in _ROLES
        for partition in bus.end_offsets(topics[role])
    ]
    loader = GenerationLoader(bus, topics)
    for records in _batched(recorded.records(), _WINDOWS_AT_ONCE):
        for one in partitions:
            alive()
            one.check(records)
        for record in records:
            alive()
            if record.configuration_digest != configuration_of(recorded, record).digest:
                findings.problems.append(
                    f"window {record.number} was learned with a configuration the ledger does not hold"
                )
            if record.number:
                _check_result(loader, record, findings)
                report("generations", record.number, findings.windows)
    for one in partitions:
        one.count_waiting()
    newest = next((record for record in recorded.back(recorded.last.number) if record.state is not None), None)
    if newest is not None:
        _check_snapshot(bus, topics, newest, findings)
    return findings


def _batched(records: Iterator[LedgerRecord], size: int) -> Iterator[list[LedgerRecord]]:
    while batch := list(islice(records, size)):
        yield batch


class _Partition:
    """One partition of an input topic, through all windows, some of them at a time."""

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        role: str,
        partition: int,
        letters: LetterOffsets,
        findings: Findings,
        report: Report,
    ) -> None:
        self._bus = bus
        self._findings = findings
        self._report = report
        self._role = role
        self._tp = TopicPartition(topics[role], partition)
        self._begin, self._end = (bus.begin_offsets(topics[role])[partition], bus.end_offsets(topics[role])[partition])
        self._position = self._begin
        self._expected: int | None = None
        self._letters = letters.get(self._tp, [])

    def check(self, records: Sequence[LedgerRecord]) -> None:
        """The next windows."""
        spans = [record.ranges.get(self._role, {}).get(self._tp.partition) for record in records]
        end = min(self._end, max((span.end for span in spans if span is not None), default=0))
        offsets = self._offsets(self._position, end)
        self._position = max(self._position, end)
        offset, expected = next(offsets, None), self._expected
        for record, span in zip(records, spans, strict=True):
            if span is None:
                expected = 0 if expected is None else expected  # a partition that was added later
                continue
            where = f"window {record.number}, {self._tp.topic}/{self._tp.partition} [{span.start},{span.end})"
            if expected is not None and span.start - span.lost != expected:
                self._problem(f"{where} does not start where the one before ended ({expected})")
            expected = span.end
            there = 0
            while offset is not None and offset < span.end:
                if offset < span.start:
                    self._problem(f"{self._tp.topic}/{self._tp.partition} offset {offset} is in no window")
                else:
                    there += 1
                offset = next(offsets, None)
            self._check_span(where, span, there)
        self._expected = expected

    def count_waiting(self) -> None:
        """The records after the last window."""
        self._findings.waiting += sum(1 for _ in self._offsets(self._position, self._end))

    def _offsets(self, begin: int, end: int) -> Iterator[int]:
        """Of the records that still exist, each one reported."""
        place = f"{self._tp.topic}/{self._tp.partition}"
        for offset in _offsets(self._bus, self._tp, begin, end):
            self._report(place, offset + 1 - self._begin, self._end - self._begin)
            yield offset

    def _check_span(self, where: str, span: Range, there: int) -> None:
        findings, dead = self._findings, sum(span.dead.values())
        total = span.accepted + span.duplicate + dead
        findings.records += total
        findings.accepted += span.accepted
        findings.duplicate += span.duplicate
        findings.dead += dead
        findings.lost += span.lost
        if span.end > self._end:
            self._problem(f"{where} ends after its topic, which ends at {self._end}")
        elif span.start < self._begin:
            findings.expired += min(span.end, self._begin) - span.start
        elif total != there:
            self._problem(f"{where} holds {there} records and counts {total}")
        letters = self._letters[bisect_left(self._letters, span.start) : bisect_left(self._letters, span.end)]
        if len(set(letters)) != dead:
            self._problem(f"{where} counts {dead} dead records and has {len(set(letters))} dead letters")
        for offset, count in Counter(letters).items():
            if count > 1:
                self._problem(f"{where} has {count} dead letters for offset {offset}; one was expected")

    def _problem(self, text: str) -> None:
        self._findings.problems.append(text)


def _offsets(bus: Bus, tp: TopicPartition, begin: int, end: int) -> Iterator[int]:
    """The offsets of the records that still exist."""
    if begin >= end:
        return
    with bus.reader({tp: begin}) as reader:
        while reader.position(tp) < end:
            yield from (record.offset for record in reader.poll(1.0) if record.offset < end)


def _letter_offsets(bus: Bus, topics: Topics, findings: Findings) -> LetterOffsets:
    """The offsets of all dead-lettered records. (Those of samples come from scorers, at least once: not checked.)"""
    found: LetterOffsets = {}
    for item in ledger.read_topic(bus, topics["dead-letters"]):
        try:
            letter = decode("dead-letters", None, item.value, item.headers)
        except InvalidEvent as error:
            findings.problems.append(error.at(item.topic, item.partition, item.offset))
            continue
        assert isinstance(letter, DeadLetter)
        found.setdefault((letter.topic, letter.partition), []).append(letter.offset)
    return {place: sorted(offsets) for place, offsets in found.items()}


def _check_result(loader: GenerationLoader, record: LedgerRecord, findings: Findings) -> None:
    """Checks the digest of a generation that still exists; counts one that compaction has removed."""
    try:
        loader.load(record)
        findings.generations += 1
    except ledger.Incomplete:
        findings.replaced += 1
        if record.number == findings.windows:
            findings.problems.append(f"the newest generation, {record.number}, is incomplete")
    except BrokenLedger as error:
        findings.problems.append(str(error))


def _check_snapshot(bus: Bus, topics: Topics, record: LedgerRecord, findings: Findings) -> None:
    try:
        ledger.load_state(bus, topics, record)
    except ledger.Incomplete as error:
        findings.problems.append(f"the newest snapshot, of window {record.number}, is incomplete: {error}")
