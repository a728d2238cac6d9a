"""Checking a stream: does the ledger add up, and does everything it points to exist?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import DeadLetter, InvalidEvent, LedgerRecord, Range, decode
from stream_cgzsl.windows import ledger

_ROLES = ("attributes", "features", "control")
Place = tuple[str, int, int]


@dataclass
class Findings:
    """What was looked at, and what is wrong with it."""

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


def check(bus: Bus, topics: Topics, alive: Callable[[], None] = lambda: None) -> Findings:
    """Ranges of consecutive windows abut; counts add up; every record still there is in exactly one window, and every
    unusable one has its dead letter; digests match. Reads every input topic once.
    """
    records = ledger.read_all(bus, topics)
    findings = Findings(windows=max(0, len(records) - 1))
    if not records:
        return findings
    letters = _dead_letters(bus, topics, findings)
    for role in _ROLES:
        for partition in bus.end_offsets(topics[role]):
            alive()
            _check_partition(bus, topics, role, partition, records, letters, findings)
    for place, count in sorted(letters.items()):
        if count > 1:
            findings.problems.append(
                f"{place[0]}/{place[1]} offset {place[2]} has {count} dead letters; one was expected"
            )
    for record in records[1:]:
        alive()
        _check_result(bus, topics, record, findings)
    return findings


def _check_partition(
    bus: Bus,
    topics: Topics,
    role: str,
    partition: int,
    records: list[LedgerRecord],
    letters: Counter[Place],
    findings: Findings,
) -> None:
    """One partition of one role through all windows."""
    topic = topics[role]
    begin = bus.begin_offsets(topic)[partition]
    offsets = _offsets(bus, TopicPartition(topic, partition), bus.end_offsets(topic)[partition])
    offset = next(offsets, None)
    expected: int | None = None
    for record in records:
        span = record.ranges.get(role, {}).get(partition)
        if span is None:
            continue
        where = f"window {record.number}, {topic}/{partition} [{span.start}, {span.end})"
        if expected is not None and span.start - span.lost != expected:
            findings.problems.append(f"{where} does not start where the one before ended ({expected})")
        expected = span.end
        there: list[int] = []
        while offset is not None and offset < span.end:
            if offset < span.start:
                findings.problems.append(f"{topic}/{partition} offset {offset} is in no window")
            else:
                there.append(offset)
            offset = next(offsets, None)
        _check_span(where, span, there, begin, letters, topic, partition, findings)
    findings.waiting += sum(1 for _ in offsets) + (offset is not None)


def _check_span(
    where: str,
    span: Range,
    there: list[int],
    begin: int,
    letters: Counter[Place],
    topic: str,
    partition: int,
    findings: Findings,
) -> None:
    dead = sum(span.dead.values())
    findings.accepted += span.accepted
    findings.duplicate += span.duplicate
    findings.dead += dead
    findings.lost += span.lost
    total = span.accepted + span.duplicate + dead
    findings.records += total
    if span.start < begin:
        findings.expired += min(span.end, begin) - span.start
    elif total != len(there):
        findings.problems.append(f"{where} holds {len(there)} records and counts {total}")
    buried = sum((topic, partition, offset) in letters for offset in range(span.start, span.end)) if dead else 0
    if buried != dead:
        findings.problems.append(f"{where} counts {dead} dead records and has {buried} dead letters")


def _offsets(bus: Bus, tp: TopicPartition, end: int) -> Iterator[int]:
    """The offsets of the records that are there."""
    begin = bus.begin_offsets(tp.topic)[tp.partition]
    if begin >= end:
        return
    with bus.reader({tp: begin}) as reader:
        while reader.position(tp) < end:
            for record in reader.poll(1.0):
                yield record.offset


def _dead_letters(bus: Bus, topics: Topics, findings: Findings) -> Counter[Place]:
    """How often each input record was buried. Samples are buried by scorers, at least once: they are left out."""
    inputs = {topics[role] for role in _ROLES}
    found: Counter[Place] = Counter()
    topic = topics["dead-letters"]
    for item in ledger.read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]):
        try:
            letter = decode("dead-letters", None, item.value, item.headers)
        except InvalidEvent as error:
            findings.problems.append(error.at(item.topic, item.partition, item.offset))
            continue
        assert isinstance(letter, DeadLetter)
        if letter.topic in inputs:
            found[(letter.topic, letter.partition, letter.offset)] += 1
    return found


def _check_result(bus: Bus, topics: Topics, record: LedgerRecord, findings: Findings) -> None:
    """A generation that is still there has the digest its record says; one that compaction took is counted."""
    try:
        ledger.load_generation(bus, topics, record)
        findings.generations += 1
    except ledger.Incomplete:
        findings.replaced += 1
        if record.number == findings.windows:
            findings.problems.append(f"the newest generation, {record.number}, is not whole")
    except BrokenLedger as error:
        findings.problems.append(str(error))
    if record.number == findings.windows and record.state is not None:
        try:
            ledger.load_state(bus, topics, record)
        except ledger.Incomplete as error:
            findings.problems.append(f"the newest snapshot, of window {record.number}, is not whole: {error}")
