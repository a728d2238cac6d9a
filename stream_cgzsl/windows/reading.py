"""What is known of a window while it is read: a decision about every record, in any order of delivery."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from stream_cgzsl.bus import Record
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Attribute, Batch, Genesis, InvalidEvent, Message, Range, Retirement, decode_with
from stream_cgzsl.windows.bottom_k import KeptFeatures
from stream_cgzsl.windows.dead_letters import dead_letter
from stream_cgzsl.windows.ids import KNOWN, NEW, Accepted, Ids
from stream_cgzsl.windows.validation import check_attribute, feature_reader, hash_id, hash_ids
from stream_cgzsl.windows.window import Description, Window, start_digest


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
    ids: Set[bytes]
    short: bool = False


_LETTER_BYTES = 2000
"""What a dead letter takes in memory besides its value, key and headers."""

_PARTITION_BIT = 33
_CLASS_MASK = 2**_PARTITION_BIT - 1
_MOST_MOVES = 1000  # each looks through the features kept of a class


class OutOfOrder(Exception):
    """A record was accepted although a lower partition has one with the same id, and that is not easily put right."""


class Reading:
    """The state of one gather."""

    def __init__(
        self, topics: Topics, genesis: Genesis, known_ids: Set[bytes], late_before: int | None, dead_bytes: float | None
    ) -> None:
        self._decoder = topics.decoders.get("attributes")
        self._genesis = genesis
        self._late_before = late_before
        self._dead_bytes = dead_bytes
        self._dead_size = 0
        self.short = False
        self._ids = Accepted(Ids(known_ids))  # with numbers made by `_origin`
        self._classes: dict[str, int] = {}  # class -> its place in `_class_ids`
        self._class_ids: list[str] = []
        self._moves = 0
        self._described: dict[str, Description] = {}
        self._retired: set[str] = set()
        self._reached: dict[int, int] = {}  # partition of attributes -> the latest time in it so far
        self._changed: dict[str, tuple[int, int]] = {}  # class -> time and partition of the record that counts
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
        self._ids.end_batch()

    def _take_attribute(self, record: Record, tally: Tally) -> None:
        event = decode_with(self._decoder, "attributes", record)
        if isinstance(event, Retirement):
            self._retired.add(event.class_id)
            if self._is_latest(event.class_id, record):
                self._described.pop(event.class_id, None)
        else:
            assert isinstance(event, Attribute)
            check_attribute(event, self._genesis)
            if event.id is not None:
                digest = hash_id("attributes", event.id)
                if self._ids.get(digest, self._ids.look_up([digest])[0]) != NEW:  # partitions are read in order
                    tally.duplicate += 1
                    return
                self._ids.add(digest, 0)
            if self._is_latest(event.class_id, record):
                vector = event.vector.astype(np.float32, copy=True)
                self._described[event.class_id] = Description(event.class_id, vector, event.name)
        tally.accepted += 1

    def _is_latest(self, class_id: str, record: Record) -> bool:
        """Whether a record about a class comes after all others so far, although a lower partition is read first.

        A class changes its partition where its topic is given more: then the latest time counts. In one partition the
        order of offsets counts, also where times go back.
        """
        time = max(record.timestamp_ms, self._reached.get(record.partition, 0))
        self._reached[record.partition] = time
        place = time, record.partition
        if place < self._changed.get(class_id, place):
            return False
        self._changed[class_id] = place
        return True

    def take_features(self, records: Sequence[Record], tallies: Tallies) -> None:
        batch = self._reader.read_all(records)
        errors = iter(batch.refused.values())
        digests = hash_ids("features", (event.id if event is not None else None for event in batch.events))
        looked_up = self._ids.look_up([digest for digest in digests if digest is not None])
        if self._take_new(records, batch, digests, looked_up, tallies):
            return
        numbers = iter(looked_up)
        accepted: list[tuple[str, bytes, int]] = []  # class, hash, row
        moved: list[tuple[str, bytes, int]] = []
        for record, event, digest in zip(records, batch.events, digests, strict=True):
            tally = tallies[record.partition]
            number = NEW if digest is None else next(numbers)
            try:
                if event is None:
                    raise next(errors)
                self._check_class(event.key)
                if digest is None:
                    value = np.ascontiguousarray(batch.rows[event.row], np.float32).data
                    accepted.append((event.key, hashlib.sha256(value).digest()[:16], event.row))
                    self._count(tally, record)
                elif (first := self._ids.get(digest, number)) == NEW:
                    accepted.append((event.key, digest, event.row))
                    self._ids.add(digest, self._origin(record, event.key))
                    self._count(tally, record)
                elif first == KNOWN or first >> _PARTITION_BIT <= record.partition:
                    tally.duplicate += 1
                else:
                    self._move(first, record, event.key, digest)
                    moved.append((event.key, digest, event.row))
            except InvalidEvent as error:
                self._reject("features", record, error, tally)
        self._ids.end_batch()
        self._kept.add(accepted, batch.rows)
        for class_id, digest, row in moved:
            self._kept.replace(class_id, digest, batch.rows[row])

    def _take_new(
        self,
        records: Sequence[Record],
        batch: Batch,
        digests: Sequence[bytes | None],
        looked_up: Sequence[int],
        tallies: Tallies,
    ) -> bool:
        """Takes records that are valid and have ids not met before, the usual case, all at once; or none of them."""
        keys = [event.key for event in batch.events if event is not None]
        new = [digest for digest in digests if digest is not None]
        if not len(keys) == len(set(new)) == len(records) or any(n != NEW for n in looked_up):
            return False
        if not self._live.issuperset(keys):
            return False
        late = [self._late_before is not None and record[3] < self._late_before for record in records]
        for class_id in set(keys) - self._classes.keys():
            self._number_of(class_id)
        classes = self._classes
        self._ids.add_all(
            new,
            [
                record[1] << _PARTITION_BIT | classes[key] << 1 | is_late
                for record, key, is_late in zip(records, keys, late, strict=True)
            ],
        )
        self._ids.end_batch()
        for partition, count in Counter(record[1] for record in records).items():
            tallies[partition].accepted += count
        if any(late):
            for record, is_late in zip(records, late, strict=True):
                tallies[record.partition].late += is_late
        self._kept.add(list(zip(keys, new, range(len(keys)), strict=True)), batch.rows)
        return True

    def _check_class(self, class_id: str) -> None:
        if class_id not in self._live:
            raise InvalidEvent(
                "unknown-class",
                f"the class {class_id!r} is not described",
                "the attributes of a class before its first feature",
                "Send its attributes, then redrive this record.",
            )

    def _is_late(self, record: Record) -> bool:
        return self._late_before is not None and record.timestamp_ms < self._late_before

    def _origin(self, record: Record, class_id: str) -> int:
        """Partition, class and lateness of an accepted record as one number."""
        return record.partition << _PARTITION_BIT | self._number_of(class_id) << 1 | self._is_late(record)

    def _number_of(self, class_id: str) -> int:
        number = self._classes.setdefault(class_id, len(self._class_ids))
        if number == len(self._class_ids):
            self._class_ids.append(class_id)
        return number

    def _move(self, first: int, record: Record, class_id: str, digest: bytes) -> None:
        """A lower partition has the id of a record that was accepted: that one was the duplicate, and this one counts.

        Raises `OutOfOrder` where it is of another class, and where this is the rule rather than the exception.
        """
        partition, old_class = first >> _PARTITION_BIT, self._class_ids[(first & _CLASS_MASK) >> 1]
        self._moves += 1
        if old_class != class_id or self._moves > _MOST_MOVES:
            raise OutOfOrder(f"partitions {record.partition} and {partition} have records with the same id")
        tallies = self._tallies["features"]
        tallies[partition].accepted -= 1
        tallies[partition].late -= first & 1
        tallies[partition].duplicate += 1
        self._count(tallies[record.partition], record)
        self._ids.renumber(digest, self._origin(record, class_id))

    def _count(self, tally: Tally, record: Record) -> None:
        tally.accepted += 1
        tally.late += self._is_late(record)

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
        return Gathered(window, ranges, dead, start_digest(window, hashes), self._ids.ids(), self.short)
