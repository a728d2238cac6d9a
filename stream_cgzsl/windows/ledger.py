"""The ledger: one record a window, read from its end or from its beginning, and what its records point to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Expired
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import (
    Event,
    InvalidEvent,
    LedgerRecord,
    Projection,
    Published,
    Serving,
    StateChunk,
    decode,
)

_POLL_SECONDS = 1.0
_SILENT_POLLS = 30
"""Without news for so long, a topic that ends too early is not late but lost. (A transaction shows topic by topic.)"""


class Incomplete(Exception):
    """What a ledger record points to is no longer all there: a newer generation has replaced it."""


def parse(record: Record) -> LedgerRecord:
    try:
        event = decode("windows", record.key, record.value, record.headers)
    except InvalidEvent as error:
        raise BrokenLedger(
            f"{error.at(record.topic, record.partition, record.offset)} Only learners may write to this topic; "
            "restore it from a copy, or start another stream with another prefix."
        ) from error
    assert isinstance(event, LedgerRecord)
    return event


def read_all(bus: Bus, topics: Topics) -> list[LedgerRecord]:
    """Every record, oldest first. Raises `BrokenLedger` where numbers are not 0, 1, 2 and so on."""
    topic = topics["windows"]
    records = [parse(r) for r in read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0])]
    for expected, record in enumerate(records):
        if record.number != expected:
            raise BrokenLedger(
                f"{bus.url}: {topic} has record {record.number} where record {expected} should be; "
                "records were removed or written by hand: restore the topic from a copy"
            )
    return records


def read_last(bus: Bus, topics: Topics) -> tuple[LedgerRecord | None, int]:
    """The newest record and the offset after everything looked at. Costs the same however long the ledger is."""
    topic = topics["windows"]
    end = bus.end_offsets(topic)[0]
    newest = next(read_back(bus, topic, end), None)
    return (None if newest is None else parse(newest)), end


def read_back(bus: Bus, topic: str, end: int) -> Iterator[Record]:
    """The records of partition 0 before `end`, newest first; hardly more is read than is asked for."""
    first = bus.begin_offsets(topic)[0]
    back = 4  # a record, its transaction marker, and some room for aborted ones
    while end > first:
        start = max(first, end - back)
        yield from reversed(list(read_range(bus, topic, start, end)))
        end, back = start, back * 8


def read_range(bus: Bus, topic: str, start: int, end: int) -> Iterator[Record]:
    """The records [start, end) of partition 0 that are there. Raises `Expired` when the topic no longer reaches so far."""
    if start >= end:
        return
    tp = TopicPartition(topic, 0)
    with bus.reader({tp: start}) as reader:
        yield from _until(bus, reader, tp, end)


def _until(bus: Bus, reader: Reader, tp: TopicPartition, end: int) -> Iterator[Record]:
    silence = 0
    while reader.position(tp) < end:
        records = reader.poll(_POLL_SECONDS)
        silence = 0 if records else silence + 1
        if silence >= _SILENT_POLLS and (actual := bus.end_offsets(tp.topic)[tp.partition]) < end:
            raise Expired(f"{tp.topic}/{tp.partition} ends at {actual} and the ledger says {end}; was it made anew?")
        for record in records:
            if record.offset >= end:
                return
            yield record


def load_generation(bus: Bus, topics: Topics, record: LedgerRecord) -> Generation:
    """The generation a ledger record names, checked against its digest. Raises `Incomplete` when it is gone."""
    place, serving = _published(record.projections, record), record.serving
    assert serving is not None and record.generation is not None
    projections: list[Projection] = []
    try:
        for event in _events(bus, topics, "projections", place):
            if isinstance(event, Projection) and event.generation == record.number:
                projections.append(event)
    except Expired as error:
        raise Incomplete(str(error)) from error
    if len(projections) != place.count:
        raise Incomplete(f"{len(projections)} of {place.count} projections of generation {record.number} are left")
    try:
        generation = _assembled(record.number, projections, serving)
    except ValueError as error:
        raise _changed(bus, record, f"does not fit together ({error})") from error
    if generation.digest != record.generation:
        raise _changed(
            bus, record, f"has the digest {generation.digest[:12]} and the ledger says {record.generation[:12]}"
        )
    return generation


def _assembled(number: int, projections: list[Projection], serving: Serving) -> Generation:
    centre = np.frombuffer(serving.centre, "<f4")
    return Generation(
        number=number,
        class_ids=tuple(p.class_id for p in projections),
        seen=np.array([p.seen for p in projections], bool),
        vectors=np.stack([p.vector for p in projections]) if projections else np.zeros((0, len(centre)), np.float32),
        biases=np.array([p.bias for p in projections], np.float32),
        centre=centre,
        metric=serving.metric,
        transform=serving.transform,
        servable=serving.servable,
        calibration=serving.calibration,
    )


def _changed(bus: Bus, record: LedgerRecord, what: str) -> BrokenLedger:
    return BrokenLedger(
        f"{bus.url}: generation {record.number} {what}; the projections were changed by someone else: check who may "
        "write to them"
    )


def load_state(bus: Bus, topics: Topics, record: LedgerRecord) -> bytes:
    """The snapshot a ledger record names, checked against its digest. Raises `Incomplete` when it is gone."""
    place = _published(record.state, record)
    chunks: list[bytes] = []
    try:
        for event in _events(bus, topics, "state", place):
            if isinstance(event, StateChunk) and event.window == record.number:
                chunks.append(event.data)
    except Expired as error:
        raise Incomplete(str(error)) from error
    if len(chunks) != place.count:
        raise Incomplete(f"{len(chunks)} of {place.count} state chunks of window {record.number} are left")
    data = b"".join(chunks)
    if hashlib.sha256(data).hexdigest() != place.sha256:
        raise Incomplete(f"the state chunks of window {record.number} do not have the digest the ledger says")
    return data


def _events(bus: Bus, topics: Topics, role: str, place: Published) -> Iterator[Event]:
    """The events in a place. What others wrote between ours, and what cannot be read, is passed over: ours are counted."""
    for item in read_range(bus, topics[role], place.first, place.end):
        with suppress(InvalidEvent):
            yield decode(role, item.key, item.value, item.headers)


def _published(place: Published | None, record: LedgerRecord) -> Published:
    if place is None:
        raise Incomplete(f"window {record.number} ({record.kind}) published nothing of that kind")
    return place
