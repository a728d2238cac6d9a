"""The ledger: one record per window, read from its end or from its beginning, and the snapshots it points to."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Expired
from stream_cgzsl.schemas import Event, Genesis, InvalidEvent, LedgerRecord, Published, StateChunk, decode

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_SILENT_POLLS = 30
"""After this many empty polls, a topic that ends too early has lost records. (A transaction shows topic by topic.)"""

_MOST_BACK = 512
"""Offsets that are read at once when going back: their records are in memory together."""


class Incomplete(Exception):
    """What a ledger record points to is no longer complete: a newer generation has replaced it."""


def parse(record: Record) -> LedgerRecord:
    try:
        event = decode("windows", record.key, record.value, record.headers)
    except InvalidEvent as error:
        if error.reason == "unknown-version":
            raise BrokenLedger(
                f"{error.at(record.topic, record.partition, record.offset)} A newer version of the learner wrote this "
                "record, in a way that this version cannot read: upgrade, or go on from a backup made before."
            ) from error
        raise BrokenLedger(
            f"{error.at(record.topic, record.partition, record.offset)} Only learners may write to this topic; "
            "restore it from a copy, or start another stream with another prefix."
        ) from error
    assert isinstance(event, LedgerRecord)
    return event


def read_all(bus: Bus, topics: Topics) -> list[LedgerRecord]:
    """Every record, oldest first: for short ledgers. Raises `BrokenLedger` where numbers are not 0, 1, 2 and so on."""
    topic = topics["windows"]
    records = [parse(record) for record in read_topic(bus, topic)]
    for expected, record in enumerate(records):
        if record.number != expected:
            raise out_of_order(bus, topic, record, expected)
    return records


def out_of_order(bus: Bus, topic: str, record: LedgerRecord, expected: int) -> BrokenLedger:
    return BrokenLedger(
        f"{bus.url}: {topic} has record {record.number} where record {expected} should be; "
        "records were removed or written by hand: restore the topic from a copy"
    )


def read_last(bus: Bus, topics: Topics) -> tuple[LedgerRecord | None, int]:
    """The newest record, and the ledger's end offset. Costs the same however long the ledger is."""
    topic = topics["windows"]
    end = bus.end_offsets(topic)[0]
    newest = next(read_back(bus, topic, end), None)
    return (None if newest is None else parse(newest)), end


def read_back(bus: Bus, topic: str, end: int) -> Iterator[Record]:
    """The records of partition 0 before `end`, newest first; reads hardly more than is asked for."""
    first = bus.begin_offsets(topic)[0]
    back = 4  # a record, its transaction marker, and some room for aborted ones
    while end > first:
        start = max(first, end - back)
        yield from reversed(list(read_range(bus, topic, start, end)))
        end, back = start, min(back * 8, _MOST_BACK)


def read_range(bus: Bus, topic: str, start: int, end: int, at_once: int = 1000) -> Iterator[Record]:
    """The records in [start, end) of partition 0, polled so many at once. Raises `Expired` when it ends before."""
    if start >= end:
        return
    tp = TopicPartition(topic, 0)
    with bus.reader({tp: start}) as reader:
        yield from _read_until(bus, reader, tp, end, at_once)


def _read_until(bus: Bus, reader: Reader, tp: TopicPartition, end: int, at_once: int) -> Iterator[Record]:
    silence = 0
    while reader.position(tp) < end:
        records = reader.poll(_POLL_SECONDS, at_once)
        silence = 0 if records else silence + 1
        if silence >= _SILENT_POLLS and (actual := bus.end_offsets(tp.topic)[tp.partition]) < end:
            raise Expired(f"{tp.topic}/{tp.partition} ends at {actual} and the ledger says {end}; was it recreated?")
        for record in records:
            if record.offset >= end:
                return
            yield record


def valid_events(role: str, records: Iterable[Record]) -> Iterator[tuple[Record, Event]]:
    """The records of a role with their events; those that cannot be decoded are skipped with a warning."""
    for record in records:
        try:
            yield record, decode(role, record.key, record.value, record.headers)
        except InvalidEvent as error:
            log.warning("skipped: %s", error.at(record.topic, record.partition, record.offset))


def read_topic(bus: Bus, topic: str) -> Iterator[Record]:
    """Every record of a topic's partition 0, oldest first."""
    return read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0])


def read_events(bus: Bus, topics: Topics, role: str, place: Published) -> Iterator[Event]:
    """The events in a place the ledger names.

    Records that others wrote in between, and records that cannot be decoded, are skipped: the caller counts its own.
    Raises `Incomplete` when the topic no longer reaches so far.
    """
    try:
        for item in read_range(bus, topics[role], place.first, place.end):
            with suppress(InvalidEvent):
                yield decode(role, item.key, item.value, item.headers)
    except Expired as error:
        raise Incomplete(str(error)) from error


def load_state(bus: Bus, topics: Topics, record: LedgerRecord) -> bytes:
    """The snapshot a ledger record names, checked against its digest. Raises `Incomplete` when it is gone."""
    place = published(record.state, record)
    chunks = [
        event.data
        for event in read_events(bus, topics, "state", place)
        if isinstance(event, StateChunk) and event.window == record.number
    ]
    if len(chunks) != place.count:
        raise Incomplete(f"{len(chunks)} of {place.count} state chunks of window {record.number} are left")
    data = b"".join(chunks)
    if hashlib.sha256(data).hexdigest() != place.sha256:
        raise Incomplete(f"the state chunks of window {record.number} do not match the digest in the ledger")
    return data


def published(place: Published | None, record: LedgerRecord) -> Published:
    """`place`, which is one of the record's. Raises `Incomplete` where the window published nothing of that kind."""
    if place is None:
        raise Incomplete(f"window {record.number} ({record.kind}) published nothing of that kind")
    return place


def genesis_in(first: LedgerRecord, bus: Bus, topics: Topics) -> Genesis:
    """The genesis, which the first record must hold."""
    if first.number or first.genesis is None:
        raise BrokenLedger(
            f"{bus.url}: {topics['windows']} does not begin with a genesis record; restore it from a copy"
        )
    return first.genesis


def read_genesis(bus: Bus, topics: Topics) -> Genesis:
    """The genesis of a stream that has one, however many attempts to write it were aborted."""
    return genesis_in(parse(next(read_topic(bus, topics["windows"]))), bus, topics)
