"""What a Python program uses to write to a stream: descriptions, examples and the ends of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
import numpy.typing as npt

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Attribute, Boundary, Feature, FeedTask, encode
from stream_cgzsl.windows.offsets import DATA_ROLES


class Producer(AbstractContextManager["Producer"]):
    """Writes to the input topics of one stream. Belongs to one thread, as a bus does.

    Calls return before their records are acknowledged: `flush`, `end_task` and `close` wait for that. A description is
    always acknowledged before an example that is sent after it.

    >>> with Producer.connect("sqlite:///birds.db", "birds") as birds:
    ...     birds.describe("heron", [0.8, 1.0, 0.9], name="grey heron")
    ...     birds.describe("penguin", [0.6, 0.1, 0.4])  # recognised without a single example
    ...     birds.teach("heron", np.random.default_rng(1).random((40, 64)))
    ...     birds.end_task("the first birds").reason
    'the first birds'
    """

    def __init__(self, bus: Bus, topics: Topics) -> None:
        self._bus = bus
        self._topics = topics
        self._writer = bus.writer()
        self._owns_bus = False
        self._describing = False  # whether a description may not be acknowledged yet

    @classmethod
    def connect(cls, url: str, prefix: str = "cgzsl", partitions: int = 4) -> Producer:
        """Connects to the bus at `url`; missing topics of the stream are created with this many partitions."""
        bus, topics = connect(url), Topics(prefix)
        try:
            bus.create(topics.specs(partitions))
            producer = cls(bus, topics)
        except BaseException:
            bus.close()
            raise
        producer._owns_bus = True
        return producer

    def describe(self, class_id: str, vector: npt.ArrayLike, name: str | None = None) -> None:
        """Describes a class, or replaces its description; `name` is for people."""
        event = Attribute(class_id=class_id, vector=np.asarray(vector), name=name)
        self._writer.send(self._topics["attributes"], encode(event))
        self._describing = True

    def teach(self, class_id: str, features: npt.ArrayLike, ids: Sequence[str] | None = None) -> None:
        """Sends examples of a class: one feature, or [rows, features]. Examples with the same id count once."""
        if self._describing:
            self.flush()
        rows = np.atleast_2d(np.asarray(features))
        for row, identity in zip(rows, [None] * len(rows) if ids is None else ids, strict=True):
            self._writer.send(self._topics["features"], encode(Feature(class_id=class_id, vector=row, id=identity)))

    def end_task(self, reason: str = "boundary") -> Boundary:
        """Closes the window: everything sent so far is learned. Returns when the boundary is acknowledged."""
        self.flush()
        return send_boundary(self._bus, self._topics, reason)

    def flush(self) -> None:
        """Returns when everything sent so far is acknowledged."""
        self._writer.flush()
        self._describing = False

    def close(self) -> None:
        """Waits as `flush` does. Closes the bus only where `connect` opened it."""
        try:
            self._writer.close()
        finally:
            if self._owns_bus:
                self._bus.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def send_boundary(bus: Bus, topics: Topics, reason: str = "boundary", feed: FeedTask | None = None) -> Boundary:
    """Writes a boundary at the current ends of the topics; returns when it is acknowledged.

    Producers must have flushed before. `feed` says which task of a data set ends here.
    """
    cut = {role: bus.end_offsets(topics[role]) for role in DATA_ROLES}  # features before attributes, see DATA_ROLES
    boundary = Boundary(reason=reason, cut=cut, feed=feed)
    with bus.writer() as writer:
        writer.send(topics["control"], encode(boundary))
        writer.flush()
    return boundary
