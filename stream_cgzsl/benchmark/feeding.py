"""Feeding a data set to a stream, task by task: holdout, attributes, features, and the boundary that ends the task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.fed import boundaries_on, check_genesis, ids_after
from stream_cgzsl.benchmark.pace import Pace
from stream_cgzsl.benchmark.settings import Plan, Task, as_used, tasks
from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Attribute, Boundary, Feature, Holdout, VectorEvent, encode
from stream_cgzsl.windows.boundary import send_boundary

ROLES = ("holdout", "attributes", "features")
"""In the order a task sends them: a class is described before its first feature, and can be tested once described."""

_FEED = re.compile(r" (static|dynamic|online) \d+x\(\d+\+\d+\)( order \d+)? task \d+$")
_LONGEST = 100  # of a name inside an id or a reason, which have 256 characters


class Feeder:
    """Publishes the tasks of a plan. Ids and boundaries say what was sent, so that another feeder can go on.

    Topics that are missing are created. `pace` holds records back; `told(count)` is called as they are sent, also for
    those that are on the bus already. Raises `UsageError` where the stream is of other sizes, or holds other tasks.
    """

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        data: Dataset,
        plan: Plan,
        order: int | None = None,
        pace: Pace | None = None,
        told: Callable[[int], None] = lambda _: None,
        partitions: int = 4,
    ) -> None:
        self._bus = bus
        self._topics = topics
        self._data = as_used(data, plan, order)
        self._pace = pace or Pace()
        self._told = told
        self._name = data.name[:_LONGEST]
        permuted = "" if order is None else f" order {order}"
        self._feed = f"{self._name} {data.extractor[:_LONGEST]} {data.digest[:8]} {plan}{permuted}"
        self.tasks = tasks(data, plan, order)
        there = bus.topics()
        missing = [spec for spec in topics.specs(partitions) if spec.name not in there]
        if missing:
            bus.create(missing)
        topics.require(bus, (*ROLES, "control", "windows"))
        check_genesis(bus, topics, data)
        self.fed()

    def fed(self) -> int:
        """How many tasks are complete on the bus, from the first on."""
        return len(self._ended(boundaries_on(self._bus, self._topics)))

    def feed(self, task: Task) -> Boundary:
        """Sends what the bus does not have of a task, then ends it. Returns when all of it is acknowledged."""
        boundaries = boundaries_on(self._bus, self._topics)
        ended = self._ended(boundaries)
        if task.number <= len(ended):
            return ended[task.number - 1]
        if task.number != len(ended) + 1:
            raise UsageError(f"task {task.number} cannot be fed before task {len(ended) + 1}")
        with self._bus.writer() as writer:
            for role in ROLES:
                there = ids_after(self._bus, self._topics, boundaries, role)
                for event in self.events(role, task):
                    if event.id not in there:
                        if self._pace.due():
                            writer.flush()
                            self._pace.wait()
                        writer.send(self._topics[role], encode(event))
                    self._told(1)
                writer.flush()
        return send_boundary(self._bus, self._topics, self._reason(task.number))

    def events(self, role: str, task: Task) -> Iterator[VectorEvent]:
        """What a task sends to a topic. An id names the data set's row or class, so that a repeat counts once."""
        data = self._data
        if role == "attributes":
            for class_id in task.described:
                identity = f"{self._name}/class/{data.label(class_id)}"
                yield Attribute(class_id=class_id, vector=data.vector(class_id), id=identity)
            return
        kind, classes, rows_of = {
            "features": (Feature, task.learned, data.training_rows),
            "holdout": (Holdout, task.described, data.test_rows),
        }[role]
        for class_id in classes:
            for row in rows_of(class_id):
                yield kind(class_id=class_id, vector=data.features[row], id=f"{self._name}/row/{row}")

    def count(self, task: Task) -> int:
        """How many records a task has, without its boundary."""
        tests = sum(len(self._data.test_rows(class_id)) for class_id in task.described)
        return len(task.described) + tests + sum(len(self._data.training_rows(class_id)) for class_id in task.learned)

    def _reason(self, number: int) -> str:
        return f"{self._feed} task {number}"

    def _ended(self, boundaries: Iterable[Boundary]) -> list[Boundary]:
        """The boundaries of this feed's tasks so far. Raises `UsageError` where there are tasks of another feed."""
        ended: list[Boundary] = []
        for boundary in boundaries:
            if boundary.reason == self._reason(len(ended) + 1):
                ended.append(boundary)
            elif _FEED.search(boundary.reason):
                raise UsageError(
                    f"{self._bus.url}: the stream {self._topics.prefix!r} has the tasks of another feed: found "
                    f"{boundary.reason!r}; expected {self._reason(len(ended) + 1)!r}; choose another --prefix"
                )
        return ended
