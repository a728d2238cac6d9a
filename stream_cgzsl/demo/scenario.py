"""What the demo sends to a stream, step by step, and how well the stream answers after each step."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Protocol

from stream_cgzsl.benchmark.synthetic_world import World
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.demo.clients import DemoClient, DemoProducer
from stream_cgzsl.errors import CgzslError
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.workers import supervisor

_EXAMPLES = 40  # per class
_QUESTIONS = 25  # samples per class


@dataclass(frozen=True)
class Step:
    """What was sent, the window it became, the seconds until it was served, and the accuracies then.

    Accuracies are fractions over the seen classes, the unseen classes and the first twelve; None where none was asked.
    """

    title: str
    record: LedgerRecord
    seconds: float
    seen: float | None = None
    unseen: float | None = None
    first: float | None = None


@dataclass(frozen=True)
class DemoResult:
    """`newcomer` was described while the stream was idle.

    `converted` classes were described first, then got one example each, then many: their mean accuracy after each.
    """

    steps: list[Step]
    converted: tuple[str, ...]
    converted_described: float
    converted_one: float
    converted_many: float
    newcomer: str
    newcomer_accuracy: float
    newcomer_seconds: float
    answers: int
    dead_letters: int

    @property
    def digests(self) -> list[str]:
        return [step.record.generation or "" for step in self.steps]


class Observer(Protocol):
    """Receives the progress of the demo, for example to show it on a screen."""

    def progress(self, text: str) -> None: ...

    def step_done(self, step: Step) -> None: ...


class Demo:
    """Runs the scenario on the stream `prefix` at `url` with worker processes, which log to files in `directory`."""

    def __init__(self, url: str, prefix: str, directory: Path, partitions: int = 2, learner: str | None = None) -> None:
        self._world = World()
        named = {} if learner is None else {"learner": learner}
        self._settings = Settings(
            bus=url,
            prefix=prefix,
            attributes=self._world.attributes.shape[1],
            features=self._world.features,
            max_wait=0.5,
            **named,
        )
        self._topics = Topics(prefix)
        self._directory = directory
        self._partitions = partitions
        self._scorers = 1 if url.startswith("sqlite") else 2
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._number = 0

    def run(self, observer: Observer) -> DemoResult:
        """Runs every step. The workers are stopped at the end, also after an error."""
        with connect(self._settings.bus) as bus:
            bus.create(self._topics.specs(self._partitions))
            with (
                self._workers(observer),
                closing(DemoProducer(bus, self._topics, self._world)) as producer,
                closing(DemoClient(bus, self._topics, self._world, self._alive)) as client,
            ):
                client.wait_for_window(0)
                return self._steps(observer, producer, client)

    def _steps(self, observer: Observer, producer: DemoProducer, client: DemoClient) -> DemoResult:
        names = self._world.classes
        first, waiting, newcomer, second, third = names[:12], names[12:18], names[18], names[19:22], names[22:24]
        converted = (waiting[0], *second)
        steps: list[Step] = []

        def step(title: str, doing: str, seen: tuple[str, ...], unseen: tuple[str, ...]) -> dict[str, float]:
            """Waits until what was just sent is served, then asks about these classes; returns their accuracies."""
            observer.progress(doing)
            started = time.monotonic()
            self._number += 1
            record = client.wait_for_window(self._number)
            client.wait_for_generation(self._number)
            seconds = time.monotonic() - started
            observer.progress(f"asking about {len(seen) + len(unseen)} classes")
            found = client.accuracy((*seen, *unseen), _QUESTIONS, f"g{self._number}") if seen else {}
            steps.append(Step(title, record, seconds, _mean(found, seen), _mean(found, unseen), _mean(found, first)))
            observer.step_done(steps[-1])
            return found

        producer.describe((*first, *waiting))
        step("18 classes described", "18 descriptions sent; waiting for the learner", (), ())

        producer.send_broken(first[0])
        producer.teach(first, _EXAMPLES, "first task")
        step("12 get examples", "480 examples sent; the learner trains", first, waiting)

        producer.describe([newcomer])
        now = step("1 more described", "one description sent", first, (*waiting, newcomer))
        newcomer_seconds = steps[-1].seconds

        producer.describe(second)
        before = step("3 more described", "three descriptions sent", first, (*waiting, newcomer, *second))

        seen, unseen = (*first, *converted), (*waiting[1:], newcomer)
        producer.teach(converted, 1, "one example each")
        one = step("4 get one example", "four examples sent; the learner trains", seen, unseen)

        producer.teach(converted, _EXAMPLES, "second task", first=1)
        many = step("the same 4 get 40", "160 examples sent; the learner trains", seen, unseen)

        producer.describe(third)
        step("2 more described", "two descriptions sent", seen, (*unseen, *third))

        producer.teach(third, _EXAMPLES, "third task")
        step("those 2 get examples", "80 examples sent; the learner trains", (*seen, *third), unseen)

        return DemoResult(
            steps=steps,
            converted=converted,
            converted_described=fmean(before[class_id] for class_id in converted),
            converted_one=fmean(one[class_id] for class_id in converted),
            converted_many=fmean(many[class_id] for class_id in converted),
            newcomer=newcomer,
            newcomer_accuracy=now[newcomer],
            newcomer_seconds=newcomer_seconds,
            answers=client.answers,
            dead_letters=sum(
                sum(span.dead.values())
                for step in steps
                for spans in step.record.ranges.values()
                for span in spans.values()
            ),
        )

    @contextmanager
    def _workers(self, observer: Observer) -> Iterator[None]:
        observer.progress("starting a learner and a scorer")
        commands = ["learn", *["score"] * self._scorers]
        try:
            for number, command in enumerate(commands):
                name = f"{command}-{number}"
                with (self._directory / f"{name}.log").open("wb") as output:
                    self._processes.append((name, supervisor.start(command, self._settings, output)))
            yield
        finally:
            supervisor.end([process for _, process in self._processes])

    def _alive(self) -> None:
        """Raises `CgzslError` with the last line of its log where a worker has ended."""
        for name, process in self._processes:
            if process.poll() is not None:
                lines = (self._directory / f"{name}.log").read_text(errors="replace").strip().splitlines()
                last = lines[-1] if lines else "its log is empty"
                raise CgzslError(f"the {name} process ended with exit code {process.returncode}: {last}")


def _mean(accuracies: dict[str, float], class_ids: tuple[str, ...]) -> float | None:
    return fmean(accuracies[class_id] for class_id in class_ids) if accuracies and class_ids else None
