"""Reading a cut: the records between two sets of offsets become one window, and what is wrong with them dead letters."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Expired
from stream_cgzsl.schemas import (
    KEPT_BYTES,
    Attribute,
    BulkReader,
    DeadLetter,
    Feature,
    Genesis,
    Headers,
    InvalidEvent,
    Message,
    Range,
    Retirement,
    VectorEvent,
    decode,
    encode,
)
from stream_cgzsl.windows.inputs import digest_of
from stream_cgzsl.windows.kept import KeptSample
from stream_cgzsl.windows.window import Array, Description, Window

log = logging.getLogger(__name__)

ORIGINAL = "original_"
"""Before the name of each header a dead letter has from the record it was."""

Offsets = dict[int, int]
Ends = dict[str, Offsets]
"""Per role, per partition: the first offset that is no longer in the window."""


@dataclass
class Tally:
    """What became of the records of one partition so far."""

    start: int
    end: int
    accepted: int = 0
    duplicate: int = 0
    late: int = 0
    dead: dict[str, int] = field(default_factory=dict)

    def as_range(self) -> Range:
        return Range(**self.__dict__)


Tallies = Mapping[int, Tally]
"""By partition."""

Take = Callable[[Sequence[Record], Tallies], None]


@dataclass(frozen=True)
class Gathered:
    """A window as read: what to train on, what became of every record, and what proves it.

    `digest` gives the inputs' digest, once it is known; `ids` are the hashes of the ids accepted here.
    """

    window: Window
    ranges: dict[str, dict[int, Range]]
    dead: list[Message]
    digest: Callable[[], str]
    ids: frozenset[bytes]

    @property
    def inputs(self) -> str:
        return self.digest()


_KEPT_EIGHTHS = 7
"""Of the memory budget, for features that are kept; the rest is room to choose in, and ids."""

_POLL_BYTES = 2**20
"""Of features at once: so much is still near the processor when it is looked at, checked and copied."""


class Gatherer:
    """Reads cuts of one stream.

    `budget_bytes` bounds the features kept of a window and what it takes to choose and to remember them; at most
    `poll_records` are asked for at once.
    """

    def __init__(self, bus: Bus, topics: Topics, genesis: Genesis, budget_bytes: int, poll_records: int = 1000) -> None:
        self._bus = bus
        self._topics = topics
        self._genesis = genesis
        self._budget_rows = budget_bytes * _KEPT_EIGHTHS // (8 * 4 * genesis.features)
        self._poll_records = max(1, min(poll_records, _POLL_BYTES // (4 * genesis.features)))

    def gather(
        self,
        number: int,
        starts: Ends,
        ends: Ends,
        live: frozenset[str],
        known_ids: frozenset[bytes],
        alive: Callable[[], None] = lambda: None,
        late_before: int | None = None,
    ) -> Gathered:
        """Window `number`: [starts, ends) of attributes, then of features.

        `live` are the classes known so far, `known_ids` the id hashes that make a record a repeat, `late_before` (ms)
        the time before which a feature is late. Of two records with one id the lowest (partition, offset) wins: features
        are read from all partitions at once, and again from one after the other where that broke the rule. `alive` is
        called often and may raise to stop. Raises `Expired`.
        """
        for together in (True, False):
            reading = _Reading(self._genesis, known_ids, late_before)
            try:
                self._read_all(reading, starts, ends, live, alive, together)
                break
            except _OutOfOrder as error:
                log.info("%s; the window is read again, partition after partition", error)
        return reading.finish(number)

    def _read_all(
        self,
        reading: _Reading,
        starts: Ends,
        ends: Ends,
        live: frozenset[str],
        alive: Callable[[], None],
        together: bool,
    ) -> None:
        attributes, features = (
            {p: reading.open(role, p, starts[role].get(p, 0), end) for p, end in sorted(ends[role].items())}
            for role in ("attributes", "features")
        )
        beginning = self._beginning("features", features)
        with self._bus.reader(beginning, waits=False) as reader:  # it looks its topic up meanwhile
            if any(tally.start < tally.end for tally in attributes.values()):
                with self._bus.reader({}, waits=False) as describing:
                    for partition, tally in attributes.items():
                        self._read(describing, "attributes", {partition: tally}, reading.take_attributes, alive)
            reading.begin_features(live, self._budget_rows, sum(tally.end - tally.start for tally in features.values()))
            parts = [features] if together else [{partition: tally} for partition, tally in features.items()]
            for part in parts:
                self._read(reader, "features", part, reading.take_features, alive)

    def _beginning(self, role: str, tallies: Tallies) -> dict[TopicPartition, int]:
        """Where to start reading, for the ranges that have anything in them."""
        topic = self._topics[role]
        return {TopicPartition(topic, p): tally.start for p, tally in tallies.items() if tally.start < tally.end}

    def _read(self, reader: Reader, role: str, tallies: Tallies, take: Take, alive: Callable[[], None]) -> None:
        """Every record of these ranges, handed to `take` as it comes."""
        beginning = self._beginning(role, tallies)
        left = {tp: tallies[tp.partition].end for tp in beginning}
        if left:
            reader.assign(beginning)
        while left:
            alive()
            records = reader.poll(1.0, self._poll_records)
            if not records:
                for tp, end in left.items():
                    self._check_end(tp, end)
            take([record for record in records if record.offset < tallies[record.partition].end], tallies)
            done = [tp for tp, end in left.items() if reader.position(tp) >= end]
            for tp in done:
                del left[tp]
            if done and left:  # what comes after a range is not to be fetched
                reader.assign({tp: reader.position(tp) for tp in left})

    def _check_end(self, tp: TopicPartition, wanted: int) -> None:
        """Nothing came: that is a pause of the bus, or these records are no longer there and never will be."""
        end = self._bus.end_offsets(tp.topic)[tp.partition]
        if end < wanted:
            raise Expired(
                f"{tp.topic}/{tp.partition} ends at {end} and the window at {wanted}; was the topic made anew? "
                "Bring its records back"
            )


class _OutOfOrder(Exception):
    """A record was taken although one with the same id stands in a lower partition."""


class _Reading:
    """The state of one gather."""

    def __init__(self, genesis: Genesis, known_ids: frozenset[bytes], late_before: int | None) -> None:
        self._genesis = genesis
        self._known = known_ids
        self._late_before = late_before
        self._ids: dict[bytes, int] = {}  # hash of an accepted id -> the partition it came from
        self._described: dict[str, Description] = {}
        self._retired: set[str] = set()
        self._live: set[str] = set()
        self._kept = KeptSample(1, 0, self._genesis.features)
        self._tallies: dict[str, dict[int, Tally]] = {"attributes": {}, "features": {}}
        self._dead: list[tuple[str, int, int, Message]] = []  # role, partition, offset
        self._bulk = BulkReader("features", genesis.features, None if genesis.signed else 0.0)

    def open(self, role: str, partition: int, start: int, end: int) -> Tally:
        tally = self._tallies[role][partition] = Tally(start, end)
        return tally

    def begin_features(self, live: frozenset[str], budget_rows: int, expected: int) -> None:
        """Attributes are all read: from here on it is known which classes there are."""
        self._live = (set(live) - self._retired) | set(self._described)
        self._kept = KeptSample(budget_rows, expected, self._genesis.features)

    def take_attributes(self, records: Sequence[Record], tallies: Tallies) -> None:
        for record in records:
            tally = tallies[record.partition]
            try:
                self._take_attribute(record, tally)
            except InvalidEvent as error:
                self._bury("attributes", record, error, tally)

    def _take_attribute(self, record: Record, tally: Tally) -> None:
        event = decode("attributes", record.key, record.value, record.headers)
        if isinstance(event, Retirement):
            self._described.pop(event.class_id, None)
            self._retired.add(event.class_id)
        else:
            assert isinstance(event, Attribute)
            check_attribute(event, self._genesis)
            if event.id is not None and self._is_repeat(hash_id("attributes", event.id), record.partition):
                tally.duplicate += 1
                return
            vector = event.vector.astype(np.float32, copy=True)
            self._described[event.class_id] = Description(event.class_id, vector, event.name)
        tally.accepted += 1

    def take_features(self, records: Sequence[Record], tallies: Tallies) -> None:
        read = self._bulk.read(records)
        accepted: list[tuple[str, bytes, int]] = []  # class, hash, row
        for record, plain in zip(records, read.events, strict=True):
            tally = tallies[record.partition]
            try:
                if plain is not None:
                    digest = self._accept(record, tally, plain.key, plain.id, read.rows[plain.row])
                    if digest is not None:
                        accepted.append((plain.key, digest, plain.row))
                else:
                    event = decode("features", record.key, record.value, record.headers)
                    assert isinstance(event, Feature)
                    check_feature(event, self._genesis)
                    digest = self._accept(record, tally, event.class_id, event.id, event.vector)
                    if digest is not None:
                        self._kept.add([(event.class_id, digest, 0)], event.vector[np.newaxis])
            except InvalidEvent as error:
                self._bury("features", record, error, tally)
        self._kept.add(accepted, read.rows)

    def _accept(self, record: Record, tally: Tally, class_id: str, id: str | None, vector: Array) -> bytes | None:
        """The hash of a feature that is valid by itself, counted; None if it is a repeat."""
        if class_id not in self._live:
            raise InvalidEvent(
                "unknown-class",
                f"the class {class_id!r} is not described",
                "the attributes of a class before its first feature",
                "Send its attributes, then redrive this record.",
            )
        if id is None:
            digest = hashlib.sha256(np.ascontiguousarray(vector, np.float32).data).digest()[:16]
        else:
            digest = hash_id("features", id)
            if self._is_repeat(digest, record.partition):
                tally.duplicate += 1
                return None
        tally.accepted += 1
        if self._late_before is not None and record.timestamp_ms < self._late_before:
            tally.late += 1
        return digest

    def _is_repeat(self, digest: bytes, partition: int) -> bool:
        if digest in self._known:
            return True
        first = self._ids.setdefault(digest, -1)
        if first < 0:
            self._ids[digest] = partition
            return False
        if first > partition:
            raise _OutOfOrder(f"an id stands in partition {first} and again in partition {partition}")
        return True

    def _bury(self, role: str, record: Record, error: InvalidEvent, tally: Tally) -> None:
        tally.dead[error.reason] = tally.dead.get(error.reason, 0) + 1
        self._dead.append((role, record.partition, record.offset, dead_letter(record, error)))

    def finish(self, number: int) -> Gathered:
        features, hashes = self._kept.finish()
        described = tuple(self._described[c] for c in sorted(self._described))
        window = Window(number, described, tuple(sorted(self._retired)), features)
        ranges = {
            role: {partition: tally.as_range() for partition, tally in tallies.items()}
            for role, tallies in self._tallies.items()
        }
        dead = [message for *_, message in sorted(self._dead, key=lambda entry: entry[:3])]
        return Gathered(window, ranges, dead, digest_of(window, hashes).result, frozenset(self._ids))


def check_attribute(event: Attribute, genesis: Genesis) -> None:
    """Raises `InvalidEvent` for a description that does not fit the stream."""
    _check_dimension(event.vector, genesis.attributes, "attribute")


def check_feature(event: VectorEvent, genesis: Genesis) -> None:
    """Raises `InvalidEvent` for a feature, holdout or sample that does not fit the stream."""
    _check_dimension(event.vector, genesis.features, "feature")
    if not genesis.signed and event.vector.min() < 0:
        raise InvalidEvent(
            "negative-feature",
            f"the smallest number is {event.vector.min():g}",
            "no negative numbers: the genesis says that features are not signed",
            "Make the stream anew with --signed if your encoder gives negative numbers.",
        )


def _check_dimension(vector: Array, expected: int, what: str) -> None:
    if vector.size != expected:
        raise InvalidEvent(
            "wrong-dimension",
            f"the vector has {vector.size} numbers",
            f"{expected}, the stream's {what} dimension since its genesis",
            "Send vectors of the encoder this stream was made for, or make another stream.",
        )


def hash_id(role: str, text: str) -> bytes:
    """The 16 bytes by which a record's id is remembered and ordered."""
    return hashlib.sha256(f"{role}\0{text}".encode()).digest()[:16]


def dead_letter(record: Record, error: InvalidEvent) -> Message:
    """The record with the reason why it could not be used. Its key and its own headers travel along.

    As of its value, at most 64 kB are kept of each: no record can be too large to be buried.
    """
    value = record.value or b""
    letter = DeadLetter(
        data=value[:KEPT_BYTES],
        size=len(value),
        sha256=hashlib.sha256(value).hexdigest(),
        reason=error.reason,
        detail=error.at(record.topic, record.partition, record.offset),
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
    )
    message = encode(letter)
    key = None if record.key is None else record.key[:KEPT_BYTES]
    headers = message.headers + _original(record.headers)
    return message._replace(key=key, headers=headers, timestamp_ms=record.timestamp_ms)


def _original(headers: Headers) -> Headers:
    """The headers of a record under their new names, cut where they are longer than what is kept of a value."""
    kept: list[tuple[str, bytes]] = []
    room = KEPT_BYTES
    for header, value in headers:
        name = (ORIGINAL + header)[:256]
        room -= len(name.encode())
        if room < 0:
            break
        kept.append((name, value[:room]))
        room -= len(kept[-1][1])
    return tuple(kept)
