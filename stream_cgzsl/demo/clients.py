"""The programs around a stream in the demo: one that sends descriptions and examples, one that asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from stream_cgzsl.benchmark.synthetic_world import TEST, TRAIN, World
from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas import Array, Feature, LedgerRecord, Message, Prediction, Sample, decode, encode
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.producer import Producer

PATIENCE_SECONDS = 60.0
_PROBES = 16


class DemoProducer:
    """Describes and teaches synthetic classes."""

    def __init__(self, bus: Bus, topics: Topics, world: World) -> None:
        self._bus = bus
        self._topics = topics
        self._world = world
        self._producer = Producer(bus, topics)

    def describe(self, class_ids: Iterable[str]) -> None:
        """Returns when the descriptions are acknowledged."""
        for class_id in class_ids:
            self._producer.describe(class_id, self._world.attribute(class_id), self._world.name(class_id))
        self._producer.flush()

    def teach(self, class_ids: Iterable[str], examples: int, reason: str, first: int = 0) -> None:
        """Sends this many examples of each class, from example number `first` on, then ends the task."""
        for class_id in class_ids:
            numbers = range(first, first + examples)
            rows = self._world.draw(class_id, first + examples, TRAIN)[first:]
            self._producer.teach(class_id, rows, [f"{class_id}#{number}" for number in numbers])
        self._producer.end_task(reason)

    def send_broken(self, class_id: str) -> None:
        """Sends an example that lost part of its bytes."""
        whole = encode(Feature(class_id=class_id, vector=self._world.draw(class_id, 1, TRAIN)[0]))
        with self._bus.writer() as writer:
            writer.send(self._topics["features"], Message(whole.key, (whole.value or b"")[:101], whole.headers))

    def close(self) -> None:
        self._producer.close()


class DemoClient:
    """Sends samples and reads predictions, as any client of a stream does. `alive` may raise to end a wait."""

    def __init__(self, bus: Bus, topics: Topics, world: World, alive: Callable[[], None]) -> None:
        self._bus = bus
        self._topics = topics
        self._world = world
        self._alive = alive
        self._writer = bus.writer()
        topic = topics["predictions"]
        self._predictions = bus.reader({TopicPartition(topic, p): end for p, end in bus.end_offsets(topic).items()})
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
        """Returns when all scorers answer with that generation: the probes reach every partition."""
        row = self._world.draw(self._world.classes[0], 1, TEST)[0]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            self._rounds += 1
            probes = {f"probe-{number}-{self._rounds}-{probe}": row for probe in range(_PROBES)}
            if all(prediction.generation == number for prediction in self._ask(probes).values()):
                return
            time.sleep(0.1)
        raise BusUnavailable(f"generation {number} was not served within {PATIENCE_SECONDS:g} s; see the scorer's log")

    def accuracy(self, class_ids: Iterable[str], rows: int, tag: str) -> dict[str, float]:
        """The fraction of samples of each class that are answered correctly; `tag` makes the request ids unique."""
        class_ids = list(class_ids)
        samples = {
            f"{tag}/{class_id}/{number}": row
            for class_id in class_ids
            for number, row in enumerate(self._world.draw(class_id, rows, TEST))
        }
        correct = dict.fromkeys(class_ids, 0)
        for request_id, prediction in self._ask(samples).items():
            truth = request_id.split("/")[1]
            correct[truth] += prediction.class_id == truth
        return {class_id: count / rows for class_id, count in correct.items()}

    def _ask(self, samples: Mapping[str, Array]) -> dict[str, Prediction]:
        """The prediction for each sample, by request id."""
        for request_id, row in samples.items():
            self._writer.send(self._topics["samples"], encode(Sample(request_id=request_id, vector=row)))
        self._writer.flush()
        answers: dict[str, Prediction] = {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(answers) < len(samples):
            self._alive()
            if time.monotonic() > deadline:
                missing = len(samples) - len(answers)
                raise BusUnavailable(
                    f"{missing} samples had no answer after {PATIENCE_SECONDS:g} s; see the scorer's log"
                )
            for record in self._predictions.poll(0.5):
                event = decode("predictions", record.key, record.value, record.headers)
                assert isinstance(event, Prediction)
                if event.request_id in samples:
                    answers[event.request_id] = event
        self.answers += len(answers)
        return answers

    def close(self) -> None:
        self._predictions.close()
        self._windows.close()
        self._writer.close()
