"""A small stream for tests: a producer, workers in threads and processes, and waiting for their results."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np
import numpy.typing as npt
from patience import PATIENCE_SECONDS

from stream_cgzsl.benchmark.synthetic_world import World
from stream_cgzsl.bus import Bus, Receipt, Record, TopicPartition, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli.flags import decoding_topics
from stream_cgzsl.runtime.metrics import LearnerMetrics, ScorerMetrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import (
    Attribute,
    Boundary,
    DeadLetter,
    Encoding,
    Event,
    Feature,
    Genesis,
    LedgerRecord,
    Message,
    Prediction,
    Retirement,
    Sample,
    decode,
    encode,
)
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.producer import send_boundary
from stream_cgzsl.windows.recorded import Ledger
from stream_cgzsl.workers import supervisor
from stream_cgzsl.workers.learner import LearnerWorker
from stream_cgzsl.workers.scorer import ScorerWorker

Array = npt.NDArray[Any]

WORLD = World(classes=8, attributes=8, features=16, seed=3)
CLASSES = tuple(sorted(WORLD.classes))
GENESIS = Genesis(attributes=8, features=16, signed=False)
TOPICS = Topics("t")

NO_DESCRIBE = {"quiet_seconds": 1e6}
"""For tests in which only boundaries close windows, however slow the machine is."""

INPUTS = ("attributes", "features")


@dataclass
class Producer:
    """Writes to the topics of one stream. Every call returns once its records are acknowledged."""

    bus: Bus
    topics: Topics = TOPICS
    encoding: Encoding = "binary"

    def send(self, role: str, *messages: Message, partition: int | None = None) -> list[Receipt]:
        with self.bus.writer() as writer:
            receipts = [writer.send(self.topics[role], message, partition) for message in messages]
            writer.flush()
        return receipts

    def events(self, role: str, *events: Event, partition: int | None = None) -> list[Receipt]:
        return self.send(role, *(encode(event, self.encoding) for event in events), partition=partition)

    def describe(self, *class_ids: str) -> None:
        self.events("attributes", *(description(class_id) for class_id in class_ids))

    def retire(self, class_id: str) -> None:
        self.events("attributes", Retirement(class_id=class_id))

    def teach(self, *class_ids: str, rows: int = 10, purpose: int = 1) -> None:
        self.events("features", *examples(class_ids, rows, purpose))

    def boundary(self, reason: str = "boundary") -> Boundary:
        return send_boundary(self.bus, self.topics, reason)

    def ask(self, questions: Mapping[str, Array]) -> None:
        self.events("samples", *(Sample(request_id=name, vector=row) for name, row in questions.items()))


def description(class_id: str) -> Attribute:
    return Attribute(class_id=class_id, vector=WORLD.attribute(class_id), name=WORLD.name(class_id))


def examples(class_ids: Iterable[str], rows: int, purpose: int = 1) -> list[Feature]:
    """`rows` features of each class, each with its own id."""
    return [
        Feature(class_id=class_id, vector=row, id=f"{class_id}/{purpose}/{number}")
        for class_id in class_ids
        for number, row in enumerate(WORLD.draw(class_id, rows, purpose))
    ]


# ---- a bus


@contextmanager
def new_bus(url: str, partitions: int = 1, topics: Topics = TOPICS) -> Iterator[Bus]:
    """A bus with every topic of the stream, all empty."""
    with connect(url) as bus:
        bus.create(topics.specs(partitions))
        yield bus


def sqlite_url(directory: Path, name: str = "bus") -> str:
    return f"sqlite:///{directory / name}.db"


def read(bus: Bus, topic: str) -> list[Record]:
    """Every record of a topic, by partition and offset."""
    ends = {TopicPartition(topic, p): end for p, end in bus.end_offsets(topic).items()}
    records: list[Record] = []
    with bus.reader({TopicPartition(topic, p): first for p, first in bus.begin_offsets(topic).items()}) as reader:
        while any(reader.position(tp) < end for tp, end in ends.items()):
            records += reader.poll(1.0)
    return sorted(records, key=lambda r: (r.partition, r.offset))


def recorded(bus: Bus, topics: Topics = TOPICS) -> Ledger:
    """The ledger of a stream that has one."""
    found = Ledger.open(bus, topics)
    assert found is not None
    return found


def letters(bus: Bus, topics: Topics = TOPICS) -> list[DeadLetter]:
    found = [decode("dead-letters", r.key, r.value, r.headers) for r in read(bus, topics["dead-letters"])]
    return [letter for letter in found if isinstance(letter, DeadLetter)]


def begin_ends(bus: Bus, topics: Topics = TOPICS) -> tuple[dict[str, dict[int, int]], dict[str, dict[int, int]]]:
    """The begin and end offsets of the input topics now."""
    begins = {role: bus.begin_offsets(topics[role]) for role in INPUTS}
    return begins, {role: bus.end_offsets(topics[role]) for role in INPUTS}


def wait_for_window(
    bus: Bus, number: int, topics: Topics = TOPICS, alive: Callable[[], None] = lambda: None
) -> LedgerRecord:
    """The ledger record of window `number`, as soon as it is committed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    tp = TopicPartition(topics["windows"], 0)
    with bus.reader({tp: bus.begin_offsets(tp.topic)[0]}) as reader:
        while time.monotonic() < deadline:
            for record in map(ledger.parse, reader.poll(0.2)):
                if record.number == number:
                    return record
            alive()
    raise AssertionError(f"window {number} was not committed within {PATIENCE_SECONDS:g} s")


def wait_for_answers(
    bus: Bus, names: Iterable[str], topics: Topics = TOPICS, alive: Callable[[], None] = lambda: None
) -> dict[str, Prediction]:
    """The first answer to each of these samples."""
    wanted, topic = set(names), topics["predictions"]
    answers: dict[str, Prediction] = {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    with bus.reader({TopicPartition(topic, p): first for p, first in bus.begin_offsets(topic).items()}) as reader:
        while time.monotonic() < deadline:
            for record in reader.poll(0.2):
                event = decode("predictions", record.key, record.value, record.headers)
                assert isinstance(event, Prediction)
                if event.request_id in wanted:
                    answers.setdefault(event.request_id, event)
            if len(answers) == len(wanted):
                return answers
            alive()
    raise AssertionError(f"no answer to {sorted(wanted - set(answers))} within {PATIENCE_SECONDS:g} s")


# ---- workers


def settings_for(bus: Bus, topics: Topics = TOPICS, **others: Any) -> Settings:
    """Settings of a test stream: the small world's dimensions, and no long waits."""
    values = {
        "attributes": 8,
        "features": 16,
        "quiet_seconds": 0.1,
        "max_wait": 0.2,
        "learner": "closed-form",
        **others,
    }
    return Settings(bus=bus.url, prefix=topics.prefix, topics=dict(topics.names), **values)


@dataclass
class InThread:
    """A worker in a thread, on its own connection. Leaving the block stops it and raises the error that ended it."""

    build: Callable[..., Any]
    settings: Settings
    metrics: Any
    arguments: dict[str, Any] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    worker: Any = None

    def __enter__(self) -> InThread:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            with connect(self.settings.bus) as bus:
                topics = decoding_topics(self.settings)
                self.worker = self.build(bus, topics, self.settings, self.metrics, self.stop, **self.arguments)
                self.worker.run()
        except BaseException as error:
            self.error = error

    def alive(self) -> None:
        """Raises the error that ended the worker, if any."""
        if self.error is not None:
            raise self.error

    def wait(self) -> None:
        """Waits until the worker ends by itself."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop.set()
        self.wait()
        if kind is None:
            self.alive()


def learner(settings: Settings, **arguments: Any) -> InThread:
    return InThread(LearnerWorker, settings, LearnerMetrics(), arguments)


def scorer(settings: Settings) -> InThread:
    return InThread(ScorerWorker, settings, ScorerMetrics())


@contextmanager
def process(command: str, settings: Settings, log: Path) -> Iterator[Popen[bytes]]:
    """A worker process that logs to a file. It is killed at the end if it is still running."""
    with log.open("wb") as output:
        child = supervisor.start(command, settings, output)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def address(log: Path) -> str:
    """The address of the HTTP pages of a worker that was started with `port=0`, from its log."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = re.search(r"metrics at (http://\S+)/metrics", log.read_text())
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"no pages; the log says:\n{log.read_text()}")


def rows_of(class_id: str, count: int = 5, purpose: int = 2) -> Array:
    """Features of a class that no learner was given."""
    return WORLD.draw(class_id, count, purpose)


def questions_about(*class_ids: str, count: int = 5, tag: str = "q") -> dict[str, Array]:
    """Samples by request id; the id contains the right class."""
    return {f"{tag}/{c}/{n}": row for c in class_ids for n, row in enumerate(rows_of(c, count))}


def assert_same_window(one: Gathered, other: Gathered) -> None:
    """Two gathered windows are the same to the last bit, and so are their digests."""
    assert one.inputs.result() == other.inputs.result()
    a, b = one.window, other.window
    assert (a.number, a.retired) == (b.number, b.retired)
    assert [(d.class_id, d.name, d.vector.tobytes()) for d in a.described] == [
        (d.class_id, d.name, d.vector.tobytes()) for d in b.described
    ]
    assert [(c, e.count, np.asarray(e.rows).tobytes()) for c, e in a.features.items()] == [
        (c, e.count, np.asarray(e.rows).tobytes()) for c, e in b.features.items()
    ]
