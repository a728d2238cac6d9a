"""How events travel: topics of partitions of records, read by offset, written alone or all at once.

Two implementations, `sqlite://` and `kafka://`, pass one contract suite (tests/contract). Everything here may raise
`BusUnavailable` when the bus cannot be reached and `Refused` when it says no; what else is raised stands at each method.
A bus and what it hands out belong to one thread, except where a docstring says otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

from stream_cgzsl.schemas.message import Headers, Message


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Record(NamedTuple):
    """A message that stands on the bus. An empty value is `None` or `b""`; both mean the same to us."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True)
class TopicSpec:
    """A topic as it should be. `cleanup`: `keep` for ever, `expire` as the bus is set, or `compact`."""

    name: str
    partitions: int = 1
    cleanup: str = "keep"
    settings: Mapping[str, str] = field(default_factory=dict)


class Right(NamedTuple):
    """What a cluster may allow a user: `operation` (Read, Write, Describe, Create, DescribeConfigs), on what of that name.

    `kind` is topic, group or transactional-id.
    """

    operation: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name!r}"


@dataclass
class Receipt:
    """Where a message went: known after the `flush` or `commit` that followed its `send`, or a `push` some time later."""

    partition: int = -1
    offset: int = -1

    @property
    def known(self) -> bool:
        return self.partition >= 0


class Reader(AbstractContextManager["Reader"], ABC):
    """Reads chosen partitions from chosen offsets. Sees only what is committed; remembers nothing on the bus."""

    @abstractmethod
    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        """Up to `max_records` next records, in offset order within a partition.

        Blocks at most `timeout` seconds and returns as soon as there is anything; an empty list means that nothing came.
        Raises `Expired` when a position is before the first record kept.
        """

    @abstractmethod
    def position(self, partition: TopicPartition) -> int:
        """The offset after everything `poll` has passed, also what it never delivers (transaction markers)."""

    @abstractmethod
    def assign(self, start: Mapping[TopicPartition, int]) -> None:
        """Reads these partitions from these offsets from now on, and no others. Does not block."""

    @abstractmethod
    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.close()


class Subscription(AbstractContextManager["Subscription"], ABC):
    """Reads a topic as one member of a group, from the group's committed offset (the first record, if it has none)."""

    @abstractmethod
    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        """As `Reader.poll`, over the partitions this member owns. Calling it is what keeps the membership."""

    @abstractmethod
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Makes `offsets` where the group resumes. Returns when the bus has them.

        Offsets of partitions this member has lost are not committed; their new owner reads those records again.
        """

    @abstractmethod
    def commit_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        """As `commit`, without waiting. One that fails is made good by the next; one that was refused raises then."""

    @abstractmethod
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions this member owns now; empty while it waits for its share."""

    @abstractmethod
    def waiting(self) -> int:
        """How many records of these partitions `poll` has yet to give, as far as that is known without asking far away."""

    @abstractmethod
    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.close()


class Writer(AbstractContextManager["Writer"], ABC):
    """Appends records, each on its own. Records of one key keep their order and share a partition."""

    @abstractmethod
    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        """Takes a message for writing. May block while buffers are full; success is known only after `flush`.

        Raises `TopicMissing` or `MessageTooLarge`, here or at the `flush` that follows.
        """

    @abstractmethod
    def push(self) -> None:
        """Sees to it that what was sent is on the bus soon, and fills in the receipts that have come, in order.

        Waits for no one far away. Raises the first failure among those receipts.
        """

    @abstractmethod
    def flush(self) -> None:
        """Blocks until everything sent is acknowledged: it will survive the death of any of our processes.

        Raises the first failure; what was not acknowledged then may or may not be on the bus.
        """

    @abstractmethod
    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.close()


class Publisher(AbstractContextManager["Publisher"], ABC):
    """Writes records that become visible together or never. One publisher a name: a newer one fences the older."""

    @abstractmethod
    def begin(self) -> None:
        """Opens a transaction. Raises `Fenced`."""

    @abstractmethod
    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        """Adds a message to the open transaction. Raises as `Writer.send`, and `Fenced`."""

    @abstractmethod
    def flush(self) -> None:
        """Blocks until every receipt of the open transaction has its offset; nothing is visible yet. Raises `Fenced`."""

    @abstractmethod
    def commit(self, group: str | None = None, consumed: Mapping[TopicPartition, int] | None = None) -> None:
        """Makes the open transaction visible, with `consumed` as the committed offsets of `group`.

        Returning means it is visible. `Fenced`: nothing of it will ever be. `BusUnavailable`: either may be true;
        open a new publisher of the same name and read what is there.
        """

    @abstractmethod
    def abort(self) -> None:
        """Drops the open transaction: nothing of it will ever be visible. Does nothing when none is open."""

    @abstractmethod
    def close(self) -> None:
        """Aborts what is open and lets go of the connection."""

    def __exit__(self, *_: object) -> None:
        self.close()


class Placing(AbstractContextManager["Placing"], ABC):
    """Writes one partition of an empty topic with every record at the offset it has already: for copies.

    `begin`, then `add` as often as needed, in the order of offsets, then `end`. Raises `Refused` where a place cannot be kept.
    """

    @abstractmethod
    def begin(self, first: int) -> None:
        """The partition is to begin at `first`: what was before has expired."""

    @abstractmethod
    def add(self, records: Sequence[Record]) -> None:
        """Blocks until all of them but perhaps the last are acknowledged."""

    @abstractmethod
    def end(self, end: int) -> None:
        """The partition is to end at `end`. Blocks until everything is acknowledged."""

    @abstractmethod
    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.close()


class Lock(AbstractContextManager["Lock"], ABC):
    """Held by at most one process, as far as anyone can tell: what must not happen twice is fenced by a `Publisher`."""

    @abstractmethod
    def acquire(self, timeout: float) -> bool:
        """True once held. Waits at most `timeout` seconds for another holder to die, end, or be silent for a session."""

    @abstractmethod
    def held(self) -> bool:
        """Whether it is still held. Cheap; may be asked by any thread."""

    @abstractmethod
    def close(self) -> None:
        """Lets go, so that another may hold it at once."""

    def __exit__(self, *_: object) -> None:
        self.close()


class Bus(AbstractContextManager["Bus"], ABC):
    """A place where topics are. `url` names it, without secrets."""

    url: str

    @abstractmethod
    def topics(self) -> dict[str, TopicSpec]:
        """Every topic there is, as it is. Blocks for one round trip."""

    @abstractmethod
    def create(self, specs: Iterable[TopicSpec]) -> None:
        """Creates the topics that are missing; those that exist are left as they are. Blocks until they can be used."""

    def denied(self, rights: Iterable[Right]) -> list[Right]:  # noqa: ARG002 - a bus without users denies nobody
        """Those of the rights that this user certainly does not have. What cannot be found out counts as given."""
        return []

    @abstractmethod
    def begin_offsets(self, topic: str) -> dict[int, int]:
        """Per partition, the first offset still kept. Raises `TopicMissing`."""

    @abstractmethod
    def end_offsets(self, topic: str) -> dict[int, int]:
        """Per partition, the offset after the last record a reader can see now. Raises `TopicMissing`."""

    @abstractmethod
    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int | None]:
        """Per partition, the first offset whose record is of that time or later; None where there is none."""

    @abstractmethod
    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The offsets the group has committed; partitions without any are left out."""

    @abstractmethod
    def reader(self, start: Mapping[TopicPartition, int], waits: bool = True) -> Reader:
        """A reader from these offsets on.

        One that only reads what is there does not wait: a partition at its end then does not hold up the others.
        """

    @abstractmethod
    def subscribe(self, topic: str, group: str) -> Subscription: ...

    @abstractmethod
    def writer(self) -> Writer: ...

    @abstractmethod
    def lock(self, name: str, topic: str) -> Lock:
        """The lock `name`. On Kafka it is the membership of group `name` that owns `topic`, which has one partition."""

    @abstractmethod
    def publisher(self, name: str) -> Publisher:
        """The publisher of that name; from here on every older one of the name is fenced. Blocks for a round trip."""

    @abstractmethod
    def placing(self, partition: TopicPartition) -> Placing:
        """Writes a partition at given offsets; it must be empty, and nobody else may write to it."""

    @abstractmethod
    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.close()
