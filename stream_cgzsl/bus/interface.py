"""The contract of a bus: topics of partitioned records, read by offset, written one by one or in transactions.

There are two implementations, `sqlite://` and `kafka://`; one contract suite (tests/contract) runs against both.
Every method may raise `BusUnavailable` when the bus cannot be reached and `Refused` when it denies a request; other
errors are named per method. A bus and the objects it returns belong to one thread unless a docstring says otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from stream_cgzsl.bus.types import Receipt, Record, Right, TopicPartition, TopicSpec
from stream_cgzsl.schemas.message import Message


class Closeable(ABC):
    """Closed at the end of its `with` block."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Reader(Closeable):
    """Reads given partitions from given offsets. Returns committed records only; stores nothing on the bus."""

    @abstractmethod
    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        """The next records, at most `max_records`, in offset order within a partition.

        Blocks at most `timeout` seconds and returns as soon as there are records; empty when none arrived.
        Raises `Expired` when a position is before the first record kept. A record that a producer damaged has no key,
        no value and the header `UNREADABLE`, so that it can be put aside like any other that is not valid.
        """

    @abstractmethod
    def position(self, partition: TopicPartition) -> int:
        """The offset after everything `poll` has passed, including what it never returns (transaction markers)."""

    @abstractmethod
    def assign(self, start: Mapping[TopicPartition, int]) -> None:
        """From now on reads these partitions, from these offsets, and no others. Does not block."""


class Subscription(Closeable):
    """Reads a topic as a member of a consumer group, from the group's committed offset or else the first record."""

    @abstractmethod
    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        """As `Reader.poll`, over the partitions this member owns. The membership lasts as long as polling goes on."""

    @abstractmethod
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Sets where the group resumes. Returns when the bus has stored the offsets.

        Offsets of partitions this member has lost are not committed; their new owner reads those records again.
        """

    @abstractmethod
    def commit_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        """As `commit`, without waiting. The next one makes up for one that failed, and raises if it was refused."""

    @abstractmethod
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions this member owns now; empty until it is given some."""

    @abstractmethod
    def lag(self) -> int:
        """How many records of its partitions `poll` has not returned yet, as far as is known without a request."""


class Writer(Closeable):
    """Appends records, each independent of the others. Records with one key share a partition and keep their order."""

    @abstractmethod
    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        """Queues a message for writing. May block while buffers are full; success is known only after `flush`.

        Raises `TopicMissing` or `MessageTooLarge`, here or at the next `flush`.
        """

    @abstractmethod
    def push(self) -> None:
        """Makes sure queued messages are written soon, and fills in, in order, the receipts of those acknowledged.

        Does not wait for the network. Raises the first failure among these receipts.
        """

    @abstractmethod
    def flush(self) -> None:
        """Blocks until everything sent is acknowledged: it then survives the death of any of our processes.

        Raises the first failure; messages not acknowledged by then may or may not have been written.
        """


class Publisher(Closeable):
    """Writes records in transactions. Opening a publisher fences every older one of the same name."""

    timeout_seconds: float | None = None
    """The bus ends a transaction that takes longer, and nothing of it shows."""

    @abstractmethod
    def begin(self) -> None:
        """Opens a transaction. Raises `Fenced`."""

    @abstractmethod
    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        """Adds a message to the open transaction. Raises as `Writer.send`, and `Fenced`."""

    @abstractmethod
    def flush(self) -> None:
        """Blocks until every receipt of the transaction has its offset; nothing is visible yet. Raises `Fenced`."""

    @abstractmethod
    def commit(self, group: str | None = None, consumed: Mapping[TopicPartition, int] | None = None) -> None:
        """Makes the open transaction visible and commits `consumed` as the offsets of `group`, atomically.

        When it returns, all of it is visible. `Fenced`: none of it ever will be. `BusUnavailable`: the outcome is
        unknown; open a new publisher of the same name and read what is there.
        """

    @abstractmethod
    def abort(self) -> None:
        """Drops the open transaction: none of it will ever be visible. Does nothing when none is open."""

    @abstractmethod
    def close(self) -> None:
        """Aborts an open transaction and disconnects."""


class OffsetWriter(Closeable):
    """Writes one partition of an empty topic with every record at its original offset: for copies.

    Call `begin`, then `add` any number of times in offset order, then `end`. Raises `Refused` when an offset cannot be
    kept.
    """

    @abstractmethod
    def begin(self, first: int) -> None:
        """Makes the partition start at offset `first`, as if everything before had expired."""

    @abstractmethod
    def add(self, records: Sequence[Record]) -> None:
        """Blocks until all of them, except possibly the last, are acknowledged."""

    @abstractmethod
    def end(self, end: int) -> None:
        """Makes the partition end at offset `end`. Blocks until everything is acknowledged."""


class Lock(Closeable):
    """Held by one process at a time. One that has lost it without knowing is stopped by fencing: see `Publisher`."""

    @abstractmethod
    def acquire(self, timeout: float) -> bool:
        """True once held. Waits at most `timeout` seconds for the holder to close it, die, or time out."""

    @abstractmethod
    def held(self) -> bool:
        """Whether it is still held. Cheap; any thread may call it."""

    @abstractmethod
    def close(self) -> None:
        """Releases the lock, so that another process can acquire it at once."""


class Bus(Closeable):
    """A set of topics. `url` identifies it and contains no secrets; `client` says what records go through."""

    url: str
    client: str

    @abstractmethod
    def topics(self) -> dict[str, TopicSpec]:
        """All existing topics by name. Blocks for one round trip."""

    @abstractmethod
    def create(self, specs: Iterable[TopicSpec]) -> None:
        """Creates the missing topics and leaves existing ones unchanged. Blocks until they can be used."""

    @abstractmethod
    def topic_ids(self, names: Iterable[str]) -> dict[str, str | None]:
        """Per topic, an id that changes when it is deleted and made anew. Raises `TopicMissing`.

        None where the bus has stored none (an old broker or file). A copy on another bus has another id.
        """

    def weaknesses(self, names: Iterable[str]) -> list[str]:  # noqa: ARG002 - a file has no copies to lose
        """What could lose or block records of these topics, and what to do; as far as this user may see."""
        return []

    def denied(self, rights: Iterable[Right]) -> list[Right]:  # noqa: ARG002 - a bus without users denies nothing
        """The rights this user is known not to have. A right that cannot be checked counts as given."""
        return []

    @abstractmethod
    def begin_offsets(self, topic: str) -> dict[int, int]:
        """Per partition, the first offset still kept. Raises `TopicMissing`."""

    @abstractmethod
    def end_offsets(self, topic: str) -> dict[int, int]:
        """Per partition, the offset after the last record a reader can see now. Raises `TopicMissing`."""

    @abstractmethod
    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int | None]:
        """Per partition, the offset of the first record with that timestamp or a later one; None if there is none."""

    @abstractmethod
    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The committed offsets of a group; partitions without one are left out."""

    @abstractmethod
    def reader(self, start: Mapping[TopicPartition, int], waits: bool = True) -> Reader:
        """A reader that starts at these offsets.

        With `waits=False`, for reading existing records only, a partition at its end does not delay the others.
        """

    @abstractmethod
    def subscribe(self, topic: str, group: str) -> Subscription: ...

    @abstractmethod
    def writer(self) -> Writer: ...

    @abstractmethod
    def lock(self, name: str, topic: str) -> Lock:
        """The lock `name`. On Kafka, the member of group `name` that owns the only partition of `topic` holds it."""

    @abstractmethod
    def publisher(self, name: str) -> Publisher:
        """The publisher `name`; from now on every older one of that name is fenced. Blocks for a round trip."""

    @abstractmethod
    def offset_writer(self, partition: TopicPartition) -> OffsetWriter:
        """Writes a partition at given offsets. It must be empty, and nobody else may write to it."""
