"""The two sides of a stream that are not ours: someone who feeds it, and someone who asks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from stream_cgzsl.benchmark.world import World
from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas import Attribute, Feature, LedgerRecord, Message, Prediction, Sample, decode, encode
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.boundary import send_boundary

PATIENCE_SECONDS = 60.0
_TRAIN, _TEST = 1, 2
_PROBES = 16


class Feeder:
    """Publishes what there is to know about a world."""

    def __init__(self, bus: Bus, topics: Topics, world: World) -> None:
        self._bus = bus
        self._topics = topics
        self._world = world
        self._writer = bus.writer()

    def describe(self, class_ids: Iterable[str]) -> None:
        for class_id in class_ids:
            event = Attribute(
                class_id=class_id, vector=self._world.attribute(class_id), name=self._world.name(class_id)
            )
            self._writer.send(self._topics["attributes"], encode(event))
        self._writer.flush()

    def teach(self, class_ids: Iterable[str], examples: int, reason: str) -> None:
        """Labelled features of these classes, then the end of the task."""
        for class_id in class_ids:
            for number, row in enumerate(self._world.draw(class_id, examples, _TRAIN)):
                event = Feature(class_id=class_id, vector=row, id=f"{class_id}#{number}")
                self._writer.send(self._topics["features"], encode(event))
        self._writer.flush()
        send_boundary(self._bus, self._topics, reason)

    def blunder(self, class_id: str) -> None:
        """A feature that lost half of its bytes on the way."""
        whole = encode(Feature(class_id=class_id, vector=self._world.draw(class_id, 1, _TRAIN)[0]))
        self._writer.send(self._topics["features"], Message(whole.key, (whole.value or b"")[:101], whole.headers))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class Asker:
    """Sends samples and reads predictions, like any client of the stream would."""

    def __init__(self, bus: Bus, topics: Topics, world: World, alive: Callable[[], None]) -> None:
        self._bus = bus
        self._topics = topics
        self._world = world
        self._alive = alive
        self._writer = bus.writer()
        topic = topics["predictions"]
        self._reader = bus.reader({TopicPartition(topic, p): end for p, end in bus.end_offsets(topic).items()})
        ledger_end = bus.end_offsets(topics["windows"])[0]
        self._windows = bus.reader({TopicPartition(topics["windows"], 0): ledger_end})
        self._rounds = 0
        self.answers = 0

    def wait_for_window(self, number: int) -> LedgerRecord:
        """The ledger record of that window, as soon as it is committed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            self._alive()
            for item in self._windows.poll(0.2):
                record = ledger.parse(item)
                if record.number == number:
                    return record
        raise BusUnavailable(f"window {number} was not committed within {PATIENCE_SECONDS:g} s; see the learner's log")

    def wait_for_generation(self, number: int) -> None:
        """Until all scorers answer with that generation: the probes reach every partition."""
        row = self._world.draw(self._world.classes[0], 1, _TEST)[0]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            self._rounds += 1
            probes = {f"probe-{number}-{self._rounds}-{probe}": row for probe in range(_PROBES)}
            if all(prediction.generation == number for prediction in self._ask(probes).values()):
                return
            time.sleep(0.1)
        raise BusUnavailable(f"generation {number} was not served within {PATIENCE_SECONDS:g} s; see the scorer's log")

    def accuracy(self, class_ids: Iterable[str], rows: int, tag: str) -> dict[str, float]:
        """The share of right answers of each class, over fresh samples."""
        class_ids = list(class_ids)
        questions = {
            f"{tag}/{class_id}/{number}": row
            for class_id in class_ids
            for number, row in enumerate(self._world.draw(class_id, rows, _TEST))
        }
        answers = self._ask(questions)
        right = dict.fromkeys(class_ids, 0)
        for name, prediction in answers.items():
            truth = name.split("/")[1]
            right[truth] += prediction.class_id == truth
        return {class_id: count / rows for class_id, count in right.items()}

    def _ask(self, questions: Mapping[str, np.ndarray]) -> dict[str, Prediction]:
        """Every question's answer."""
        for name, row in questions.items():
            self._writer.send(self._topics["samples"], encode(Sample(request_id=name, vector=row)))
        self._writer.flush()
        answers: dict[str, Prediction] = {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(answers) < len(questions):
            self._alive()
            if time.monotonic() > deadline:
                raise BusUnavailable(
                    f"{len(questions) - len(answers)} samples had no answer after {PATIENCE_SECONDS:g} s"
                )
            for record in self._reader.poll(0.5):
                event = decode("predictions", record.key, record.value, record.headers)
                assert isinstance(event, Prediction)
                if event.request_id in questions:
                    answers[event.request_id] = event
        self.answers += len(answers)
        return answers

    def close(self) -> None:
        self._reader.close()
        self._windows.close()
        self._writer.close()
