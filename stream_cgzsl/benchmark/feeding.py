"""Feeding a data set to a stream, task by task: holdout, attributes, features, and the boundary that ends the task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.pace import Pace
from stream_cgzsl.benchmark.settings import Plan, Task, as_used, tasks
from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import (
    Attribute,
    Boundary,
    Feature,
    Genesis,
    Holdout,
    InvalidEvent,
    VectorEvent,
    decode,
    encode,
)
from stream_cgzsl.windows.boundary import send_boundary
from stream_cgzsl.windows.ledger import parse, read_range

ROLES = ("holdout", "attributes", "features")
"""In the order a task sends them: a class is described before its first feature, and can be tested once described."""

_FEED = re.compile(r" (static|dynamic|online) \d+x\(\d+\+\d+\)( order \d+)? task \d+$")
_ID_HEADER = "ce_id"


class Feeder:
    """Publishes the tasks of a plan. Ids and boundaries say what was sent, so that another feeder can go on.

    Topics that are missing are created. `pace` holds records back; `told(count)` is called as they are sent, also for those
    that are on the bus already. Raises `UsageError` where the stream is of other sizes, or holds other tasks.
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
        self._plan = plan
        self._order = order
        self._pace = pace or Pace()
        self._told = told
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
        return len(self._ended(self._boundaries()))

    def feed(self, task: Task) -> Boundary:
        """Sends what the bus does not have of a task, then ends it. Returns when all of it is acknowledged."""
        boundaries = self._boundaries()
        ended = self._ended(boundaries)
        if task.number <= len(ended):
            return ended[task.number - 1]
        if task.number != len(ended) + 1:
            raise UsageError(f"task {task.number} cannot be fed before task {len(ended) + 1}")
        with self._bus.writer() as writer:
            for role in ROLES:
                there = self._ids_after(boundaries, role)
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
                yield Attribute(
                    class_id=class_id, vector=data.vector(class_id), id=f"{data.name}/class/{data.label(class_id)}"
                )
            return
        kind, classes = (Feature, task.learned) if role == "features" else (Holdout, task.described)
        for class_id in classes:
            for row in data.training_rows(class_id) if role == "features" else data.test_rows(class_id):
                yield kind(class_id=class_id, vector=data.features[row], id=f"{data.name}/row/{row}")

    def count(self, task: Task) -> int:
        """How many records a task has, without its boundary."""
        data = self._data
        rows = sum(len(data.test_rows(c)) for c in task.described) + sum(
            len(data.training_rows(c)) for c in task.learned
        )
        return len(task.described) + rows

    def _reason(self, number: int) -> str:
        order = "" if self._order is None else f" order {self._order}"
        return f"{self._data.name} {self._data.extractor} {self._plan}{order} task {number}"

    def _ended(self, boundaries: Iterable[Boundary]) -> list[Boundary]:
        """The boundaries of this feed's tasks so far. Raises `UsageError` where there are tasks of another feed."""
        ended: list[Boundary] = []
        for boundary in boundaries:
            if boundary.reason == self._reason(len(ended) + 1):
                ended.append(boundary)
            elif _FEED.search(boundary.reason):
                raise UsageError(
                    f"{self._bus.url}: the stream {self._topics.prefix!r} already has {boundary.reason!r}, which is not "
                    f"of this feed ({self._reason(len(ended) + 1)!r} would be next); choose another --prefix"
                )
        return ended

    def _boundaries(self) -> list[Boundary]:
        """Those of everybody, oldest first."""
        found: list[Boundary] = []
        topic = self._topics["control"]
        for record in read_range(self._bus, topic, self._bus.begin_offsets(topic)[0], self._bus.end_offsets(topic)[0]):
            try:
                event = decode("control", record.key, record.value, record.headers)
            except InvalidEvent:
                continue  # the learner buries it
            if isinstance(event, Boundary):
                found.append(event)
        return found

    def _ids_after(self, boundaries: Iterable[Boundary], role: str) -> set[str]:
        """The ids of records no boundary has closed off: what an interrupted feed has sent of its task."""
        topic = self._topics[role]
        starts, ends = self._bus.begin_offsets(topic), self._bus.end_offsets(topic)
        for boundary in boundaries:
            for partition, offset in (boundary.cut or {}).get(role, {}).items():
                starts[partition] = max(starts.get(partition, 0), offset)
        open_ends = {TopicPartition(topic, p): end for p, end in ends.items() if starts.get(p, 0) < end}
        ids: set[str] = set()
        if not open_ends:
            return ids
        with self._bus.reader({tp: starts.get(tp.partition, 0) for tp in open_ends}) as reader:
            while any(reader.position(tp) < end for tp, end in open_ends.items()):
                for record in reader.poll(1.0):
                    ids.update(value.decode(errors="replace") for name, value in record.headers if name == _ID_HEADER)
        return ids


def genesis_of(bus: Bus, topics: Topics) -> Genesis | None:
    """What the stream's first record fixed; None where no learner has ever started."""
    topic = topics["windows"]
    first = next(read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]), None)
    return None if first is None else parse(first).genesis


def check_genesis(bus: Bus, topics: Topics, data: Dataset) -> None:
    """Raises `UsageError` where the stream exists and its vectors are not this data's."""
    genesis = genesis_of(bus, topics)
    if genesis is None:
        return
    stream = f"{bus.url}: the stream {topics.prefix!r}"
    for what, found, wanted in (
        ("features", data.features.shape[1], genesis.features),
        ("attributes", data.attributes.shape[1], genesis.attributes),
    ):
        if found != wanted:
            raise UsageError(
                f"{stream} has {what} of {wanted} numbers since its genesis, and those of {data.name} have {found}; "
                "choose another --prefix"
            )
    if data.signed and not genesis.signed:
        raise UsageError(
            f"{stream} takes no negative features since its genesis, and {data.name} has some; choose another --prefix and "
            "start its learner with --signed"
        )
