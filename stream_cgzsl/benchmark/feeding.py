"""Feeding a data set to a stream, task by task: holdout, attributes, features, and the boundary that ends the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.datasets.dataset import Rows
from stream_cgzsl.benchmark.feed_state import check_genesis, ids_after, read_boundaries
from stream_cgzsl.benchmark.pace import Pace
from stream_cgzsl.benchmark.protocols import AnyPlan, as_used, tasks
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Attribute, Boundary, Feature, FeedTask, Holdout, VectorEvent, encode
from stream_cgzsl.windows.producer import send_boundary

ROLES = ("holdout", "attributes", "features")
"""In the order a task sends them: a class is described before its first feature, and can be tested once described."""

_LONGEST_NAME = 100
"""Part of an id or a reason, which may have 256 characters."""


class Feeder:
    """Publishes the tasks of a plan. Ids and boundaries record what was sent, so that another feeder can resume.

    Creates the topics that are missing. `pace` limits the rate; `sent(count)` is called for every record, also for
    those that were on the bus before. Raises `UsageError` where the stream has vectors of other sizes, or other tasks.
    """

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        data: Dataset,
        plan: AnyPlan,
        order: int | None = None,
        pace: Pace | None = None,
        sent: Callable[[int], None] = lambda _: None,
        partitions: int = 4,
    ) -> None:
        self._bus = bus
        self._topics = topics
        self._data = as_used(data, plan, order)
        self._pace = pace or Pace()
        self._sent = sent
        self._name = data.name[:_LONGEST_NAME]
        permuted = "" if order is None else f" order {order}"
        self._feed = f"{self._name} {data.extractor[:_LONGEST_NAME]} {data.digest[:8]} {plan}{permuted}"
        self.tasks = tasks(data, plan, order)
        existing = bus.topics()
        missing = [spec for spec in topics.specs(partitions) if spec.name not in existing]
        if missing:
            bus.create(missing)
        topics.require(bus, (*ROLES, "control", "windows"))
        check_genesis(bus, topics, data)
        self.fed()

    def fed(self) -> int:
        """How many tasks are complete on the bus, counted from the first."""
        return len(self._ended(read_boundaries(self._bus, self._topics)))

    def feed(self, task: Task) -> Boundary:
        """Sends what the bus does not have of a task, then ends it. Returns when all of it is acknowledged."""
        boundaries = read_boundaries(self._bus, self._topics)
        ended = self._ended(boundaries)
        if task.number <= len(ended):
            return ended[task.number - 1]
        if task.number != len(ended) + 1:
            raise UsageError(f"task {task.number} cannot be fed before task {len(ended) + 1}")
        with self._bus.writer() as writer:
            for role in ROLES:
                on_bus = ids_after(self._bus, self._topics, boundaries, role)
                for event in self.events(role, task):
                    if event.id not in on_bus:
                        if self._pace.due():
                            writer.flush()
                            self._pace.wait()
                        writer.send(self._topics[role], encode(event))
                    self._sent(1)
                writer.flush()
        number = task.number
        return send_boundary(self._bus, self._topics, self._reason(number), FeedTask(name=self._feed, task=number))

    def events(self, role: str, task: Task) -> Iterator[VectorEvent]:
        """What a task sends to a topic. An id names the data set's row or class, so that a repeat counts once."""
        data = self._data
        if role == "attributes":
            for class_id in task.described:
                identity = f"{self._name}/class/{data.label(class_id)}"
                yield Attribute(class_id=class_id, vector=data.vector(class_id), id=identity)
            return
        kind: type[Feature] | type[Holdout] = Feature if role == "features" else Holdout
        for class_id, rows in self._rows(role, task):
            for row in rows:
                yield kind(class_id=class_id, vector=data.features[row], id=f"{self._name}/row/{row}")

    def count(self, task: Task) -> int:
        """How many records a task has, not counting its boundary."""
        return len(task.described) + sum(
            len(rows) for role in ("features", "holdout") for _, rows in self._rows(role, task)
        )

    def _rows(self, role: str, task: Task) -> Iterator[tuple[str, Rows]]:
        """The rows that a task sends to a topic, class by class."""
        if role == "features":
            return ((class_id, task.examples(self._data, class_id)) for class_id in task.learned)
        return ((class_id, self._data.test_rows(class_id)) for class_id in task.described)

    def _reason(self, number: int) -> str:
        return f"{self._feed} task {number}"

    def _ended(self, boundaries: Iterable[Boundary]) -> list[Boundary]:
        """The boundaries of this feed's tasks so far. Raises `UsageError` where there are tasks of another feed."""
        ended: list[Boundary] = []
        for boundary in boundaries:
            number = len(ended) + 1
            if boundary.feed is None:  # sent by hand, or by a feeder of the time before this field
                if boundary.reason == self._reason(number):
                    ended.append(boundary)
            elif boundary.feed == FeedTask(name=self._feed, task=number):
                ended.append(boundary)
            else:
                raise UsageError(
                    f"{self._bus.url}: the stream {self._topics.prefix!r} has the tasks of another feed: found "
                    f"{boundary.reason!r}; expected {self._reason(number)!r}; choose another --prefix"
                )
        return ended
