"""Checking a stream: does the ledger add up, and does everything it points to exist?"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.history.restore import configuration_at
from stream_cgzsl.schemas import DeadLetter, InvalidEvent, LedgerRecord, Range, decode
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows import ledger

_ROLES = ("attributes", "features", "control")
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
    bus: Bus,
    topics: Topics,
    alive: Callable[[], None] = lambda: None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> Findings:
    """Checks that ranges of consecutive windows abut, that counts add up, that every record still on the bus is in
    exactly one window, that every invalid one has its dead letter, and that digests match. Reads every input once.

    `report` is told what is being checked, how much of it is done, and of how much.
    """
    records = ledger.read_all(bus, topics)
    findings = Findings(windows=max(0, len(records) - 1))
    if not records:
        return findings
    letters = _letter_offsets(bus, topics, findings)
    for role in _ROLES:
        for partition in bus.end_offsets(topics[role]):
            alive()
            _Partition(bus, topics[role], partition, letters, findings, report).check(role, records)
    for record in records:
        alive()
        if record.configuration_digest != configuration_at(records, record.number).digest:
            findings.problems.append(
                f"window {record.number} was learned with a configuration the ledger does not hold"
            )
        if record.number:
            _check_result(bus, topics, record, findings)
            report("generations", record.number, findings.windows)
    return findings


class _Partition:
    """One partition of an input topic, through all windows."""

    def __init__(
        self,
        bus: Bus,
        topic: str,
        partition: int,
        letters: LetterOffsets,
        findings: Findings,
        report: Callable[[str, int, int], None],
    ) -> None:
        self._findings = findings
        self._tp = TopicPartition(topic, partition)
        self._begin, self._end = bus.begin_offsets(topic)[partition], bus.end_offsets(topic)[partition]
        self._offsets = _offsets(bus, self._tp, self._begin, self._end, report)
        self._letters = letters.get(self._tp, [])

    def check(self, role: str, records: list[LedgerRecord]) -> None:
        offset = next(self._offsets, None)
        expected: int | None = None
        for record in records:
            span = record.ranges.get(role, {}).get(self._tp.partition)
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
                offset = next(self._offsets, None)
            self._check_span(where, span, there)
        self._findings.waiting += sum(1 for _ in self._offsets) + (offset is not None)

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


def _offsets(
    bus: Bus, tp: TopicPartition, begin: int, end: int, report: Callable[[str, int, int], None]
) -> Iterator[int]:
    """The offsets of the records that still exist."""
    if begin >= end:
        return
    with bus.reader({tp: begin}) as reader:
        while reader.position(tp) < end:
            for record in reader.poll(1.0):
                yield record.offset
            report(f"{tp.topic}/{tp.partition}", min(reader.position(tp), end) - begin, end - begin)


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


def _check_result(bus: Bus, topics: Topics, record: LedgerRecord, findings: Findings) -> None:
    """Checks the digest of a generation that still exists; counts one that compaction has removed."""
    try:
        load_generation(bus, topics, record)
        findings.generations += 1
    except ledger.Incomplete:
        findings.replaced += 1
        if record.number == findings.windows:
            findings.problems.append(f"the newest generation, {record.number}, is incomplete")
    except BrokenLedger as error:
        findings.problems.append(str(error))
    if record.number == findings.windows and record.state is not None:
        try:
            ledger.load_state(bus, topics, record)
        except ledger.Incomplete as error:
            findings.problems.append(f"the newest snapshot, of window {record.number}, is incomplete: {error}")
