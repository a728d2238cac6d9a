"""Step 2, reading a cut: the records between two sets of offsets become a window, invalid ones dead letters."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from stream_cgzsl.bus import Bus, Reader, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import Expired
from stream_cgzsl.schemas import Array, Attribute, Genesis, InvalidEvent, Message, Range, Retirement, decode_with
from stream_cgzsl.windows.bottom_k import KeptFeatures
from stream_cgzsl.windows.dead_letters import dead_letter
from stream_cgzsl.windows.offsets import Ends
from stream_cgzsl.windows.validation import check_attribute, feature_reader, hash_id
from stream_cgzsl.windows.window import Description, Window, start_digest

log = logging.getLogger(__name__)


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


@dataclass(frozen=True)
class Gathered:
    """A window as it was read: what to train on, and what became of every record.

    `inputs` will be the digest of everything accepted; `ids` are the hashes of the ids accepted here. A `short` window
    ends before its cut, because too many of its records are dead letters.
    """

    window: Window
    ranges: dict[str, dict[int, Range]]
    dead: list[Message]
    inputs: Future[str]
    ids: frozenset[bytes]
    short: bool = False


DEAD_BYTES = 64 * 2**20
"""A window with more than this in dead letters ends where it was read to; the rest of its cut is the next window's."""

_LETTER_BYTES = 2000
"""What a dead letter takes in memory besides its value, key and headers."""

_KEPT_EIGHTHS = 7
"""Of the memory budget, for the features that are kept; the rest is for choosing them, and for ids."""

_POLL_BYTES = 2**20
"""Features per poll: this much is still in the processor's cache when it is decoded, checked and copied."""


class Gatherer:
    """Reads cuts of one stream.

    `budget_bytes` bounds the features kept of a window, together with the memory for choosing them and for ids. At
    most `poll_records` are polled at once.
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
        dead_bytes: float | None = math.inf,
    ) -> Gathered:
        """Window `number`: [starts, ends) of attributes, then of features.

        `live` are the classes known so far, `known_ids` the id hashes that make a record a duplicate, `late_before`
        (ms) the time before which a feature is late. Of two records with one id the lowest (partition, offset) wins:
        features are read from all partitions at once, and read again partition by partition if that broke the rule.
        With more than `dead_bytes` of dead letters the window ends early; None: they are only counted.
        `alive` is called often and may raise to stop. Raises `Expired`.
        """
        for together in (True, False):
            reading = _Reading(self._topics, self._genesis, known_ids, late_before, dead_bytes)
            try:
                self._read_all(reading, starts, ends, live, alive, together)
                break
            except _OutOfOrder as error:
                log.info("%s; reading the window again, partition by partition", error)
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
        with self._bus.reader(beginning, waits=False) as reader:  # it looks up its topic meanwhile
            if any(tally.start < tally.end for tally in attributes.values()):
                with self._bus.reader({}, waits=False) as describing:
                    for partition, tally in attributes.items():
                        self._read(describing, "attributes", {partition: tally}, reading, alive)
            reading.begin_features(live, self._budget_rows, sum(tally.end - tally.start for tally in features.values()))
            parts = [features] if together else [{partition: tally} for partition, tally in features.items()]
            for part in parts:
                self._read(reader, "features", part, reading, alive)

    def _beginning(self, role: str, tallies: Tallies) -> dict[TopicPartition, int]:
        """Where to start reading, for the ranges that have anything in them."""
        topic = self._topics[role]
        return {TopicPartition(topic, p): tally.start for p, tally in tallies.items() if tally.start < tally.end}

    def _read(self, reader: Reader, role: str, tallies: Tallies, reading: _Reading, alive: Callable[[], None]) -> None:
        """Takes every record of these ranges, batch by batch; once `reading` is full, shortens the ranges instead."""
        take = reading.take_attributes if role == "attributes" else reading.take_features
        beginning = self._beginning(role, tallies)
        left = {tp: tallies[tp.partition].end for tp in beginning}
        if left:
            reader.assign(beginning)
        while left:
            alive()
            if reading.full:
                reading.short = True
                for tp, end in left.items():
                    tallies[tp.partition].end = min(end, reader.position(tp))
                return
            records = reader.poll(1.0, self._poll_records)
            if not records:
                for tp, end in left.items():
                    self._check_end(tp, end)
            take([record for record in records if record.offset < tallies[record.partition].end], tallies)
            done = [tp for tp, end in left.items() if reader.position(tp) >= end]
            for tp in done:
                del left[tp]
            if done and left:  # nothing beyond a range should be fetched
                reader.assign({tp: reader.position(tp) for tp in left})

    def _check_end(self, tp: TopicPartition, wanted: int) -> None:
        """Nothing came: the bus pauses, or the records no longer exist. Raises `Expired` for the latter."""
        end = self._bus.end_offsets(tp.topic)[tp.partition]
        if end < wanted:
            raise Expired(
                f"{tp.topic}/{tp.partition} ends at {end} and the window at {wanted}; was the topic recreated? "
                "Restore its records"
            )


class _OutOfOrder(Exception):
    """A record was accepted although a lower partition has one with the same id."""


class _Reading:
    """The state of one gather."""

    def __init__(
        self,
        topics: Topics,
        genesis: Genesis,
        known_ids: frozenset[bytes],
        late_before: int | None,
        dead_bytes: float | None,
    ) -> None:
        self._decoder = topics.decoders.get("attributes")
        self._genesis = genesis
        self._known = known_ids
        self._late_before = late_before
        self._dead_bytes = dead_bytes
        self._dead_size = 0
        self.short = False
        self._ids: dict[bytes, int] = {}  # hash of an accepted id -> the partition it came from
        self._described: dict[str, Description] = {}
        self._retired: set[str] = set()
        self._live: set[str] = set()
        self._kept = KeptFeatures(1, 0, self._genesis.features)
        self._tallies: dict[str, dict[int, Tally]] = {"attributes": {}, "features": {}}
        self._dead: list[tuple[str, int, int, Message]] = []  # role, partition, offset
        self._reader = feature_reader("features", genesis, topics.decoders.get("features"))

    def open(self, role: str, partition: int, start: int, end: int) -> Tally:
        tally = self._tallies[role][partition] = Tally(start, end)
        return tally

    def begin_features(self, live: frozenset[str], budget_rows: int, expected: int) -> None:
        """All attributes are read: from here on the set of classes is known."""
        self._live = (set(live) - self._retired) | set(self._described)
        self._kept = KeptFeatures(budget_rows, expected, self._genesis.features)

    def take_attributes(self, records: Sequence[Record], tallies: Tallies) -> None:
        for record in records:
            tally = tallies[record.partition]
            try:
                self._take_attribute(record, tally)
            except InvalidEvent as error:
                self._reject("attributes", record, error, tally)

    def _take_attribute(self, record: Record, tally: Tally) -> None:
        event = decode_with(self._decoder, "attributes", record)
        if isinstance(event, Retirement):
            self._described.pop(event.class_id, None)
            self._retired.add(event.class_id)
        else:
            assert isinstance(event, Attribute)
            check_attribute(event, self._genesis)
            if event.id is not None and self._is_duplicate(hash_id("attributes", event.id), record.partition):
                tally.duplicate += 1
                return
            vector = event.vector.astype(np.float32, copy=True)
            self._described[event.class_id] = Description(event.class_id, vector, event.name)
        tally.accepted += 1

    def take_features(self, records: Sequence[Record], tallies: Tallies) -> None:
        batch = self._reader.read_all(records)
        errors = iter(batch.refused.values())
        accepted: list[tuple[str, bytes, int]] = []  # class, hash, row
        for record, event in zip(records, batch.events, strict=True):
            tally = tallies[record.partition]
            try:
                if event is None:
                    raise next(errors)
                digest = self._accept(record, tally, event.key, event.id, batch.rows[event.row])
                if digest is not None:
                    accepted.append((event.key, digest, event.row))
            except InvalidEvent as error:
                self._reject("features", record, error, tally)
        self._kept.add(accepted, batch.rows)

    def _accept(self, record: Record, tally: Tally, class_id: str, id: str | None, vector: Array) -> bytes | None:
        """Counts a feature that is valid by itself. Returns its hash, or None if it is a duplicate."""
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
            if self._is_duplicate(digest, record.partition):
                tally.duplicate += 1
                return None
        tally.accepted += 1
        if self._late_before is not None and record.timestamp_ms < self._late_before:
            tally.late += 1
        return digest

    def _is_duplicate(self, digest: bytes, partition: int) -> bool:
        if digest in self._known:
            return True
        first = self._ids.setdefault(digest, -1)
        if first < 0:
            self._ids[digest] = partition
            return False
        if first > partition:
            raise _OutOfOrder(f"partitions {first} and {partition} have records with the same id")
        return True

    def _reject(self, role: str, record: Record, error: InvalidEvent, tally: Tally) -> None:
        tally.dead[error.reason] = tally.dead.get(error.reason, 0) + 1
        if self._dead_bytes is None:
            return
        letter = dead_letter(record, error)
        self._dead.append((role, record.partition, record.offset, letter))
        headers = sum(len(value) for _, value in letter.headers)
        self._dead_size += len(letter.value or b"") + len(letter.key or b"") + headers + _LETTER_BYTES

    @property
    def full(self) -> bool:
        """Whether the window must end with the records taken so far."""
        return self._dead_bytes is not None and self._dead_size > self._dead_bytes

    def finish(self, number: int) -> Gathered:
        features, hashes = self._kept.finish()
        described = tuple(self._described[c] for c in sorted(self._described))
        window = Window(number, described, tuple(sorted(self._retired)), features)
        ranges = {
            role: {partition: tally.as_range() for partition, tally in tallies.items()}
            for role, tallies in self._tallies.items()
        }
        dead = [message for *_, message in sorted(self._dead, key=lambda entry: entry[:3])]
        return Gathered(window, ranges, dead, start_digest(window, hashes), frozenset(self._ids), self.short)
