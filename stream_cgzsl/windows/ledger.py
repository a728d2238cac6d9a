"""The ledger: one record a window, read from its end or from its beginning, and what its records point to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger, Expired
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import InvalidEvent, LedgerRecord, Projection, Published, StateChunk, decode


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
    first, end = bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]
    back = 4  # a record, its transaction marker, and some room for aborted ones
    while True:
        start = max(first, end - back)
        records = list(read_range(bus, topic, start, end))
        if records:
            return parse(records[-1]), end
        if start == first:
            return None, end
        back *= 8


def read_range(bus: Bus, topic: str, start: int, end: int) -> Iterator[Record]:
    """The records [start, end) of partition 0 that are there."""
    if start >= end:
        return
    tp = TopicPartition(topic, 0)
    with bus.reader({tp: start}) as reader:
        yield from _until(reader, tp, end)


def _until(reader: Reader, tp: TopicPartition, end: int) -> Iterator[Record]:
    while reader.position(tp) < end:
        for record in reader.poll(1.0):
            if record.offset >= end:
                return
            yield record


def load_generation(bus: Bus, topics: Topics, record: LedgerRecord) -> Generation:
    """The generation a ledger record names, checked against its digest. Raises `Incomplete` when it is gone."""
    place, serving = _published(record.projections, record), record.serving
    assert serving is not None and record.generation is not None
    projections: list[Projection] = []
    try:
        for item in read_range(bus, topics["projections"], place.first, place.end):
            event = decode("projections", item.key, item.value, item.headers)
            if isinstance(event, Projection) and event.generation == record.number:
                projections.append(event)
    except (Expired, InvalidEvent) as error:
        raise Incomplete(str(error)) from error
    if len(projections) != place.count:
        raise Incomplete(f"{len(projections)} of {place.count} projections of generation {record.number} are left")
    centre = np.frombuffer(serving.centre, "<f4")
    generation = Generation(
        number=record.number,
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
    if generation.digest != record.generation:
        raise BrokenLedger(
            f"{bus.url}: generation {record.number} has the digest {generation.digest[:12]} and the ledger says "
            f"{record.generation[:12]}; the projections were changed by someone else: check who may write to them"
        )
    return generation


def load_state(bus: Bus, topics: Topics, record: LedgerRecord) -> bytes:
    """The snapshot a ledger record names, checked against its digest. Raises `Incomplete` when it is gone."""
    place = _published(record.state, record)
    chunks: list[bytes] = []
    try:
        for item in read_range(bus, topics["state"], place.first, place.end):
            event = decode("state", item.key, item.value, item.headers)
            assert isinstance(event, StateChunk)
            chunks.append(event.data)
    except (Expired, InvalidEvent) as error:
        raise Incomplete(str(error)) from error
    data = b"".join(chunks)
    if len(chunks) != place.count or hashlib.sha256(data).hexdigest() != place.sha256:
        raise Incomplete(f"{len(chunks)} of {place.count} state chunks of window {record.number} are left")
    return data


def _published(place: Published | None, record: LedgerRecord) -> Published:
    if place is None:
        raise Incomplete(f"window {record.number} ({record.kind}) published nothing of that kind")
    return place
