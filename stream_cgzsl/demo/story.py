"""The story: what is fed to the stream, scene by scene, and how well it answers after each."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Protocol

from stream_cgzsl.benchmark.world import World
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.demo.people import Asker, Feeder
from stream_cgzsl.errors import CgzslError
from stream_cgzsl.schemas import LedgerRecord
from stream_cgzsl.settings import Settings
from stream_cgzsl.workers import together

_EXAMPLES = 40  # features a class to learn from
_QUESTIONS = 25  # samples a class to be answered


@dataclass(frozen=True)
class Scene:
    """What happened, what came of it, and the shares of right answers then (None where there was nothing to ask)."""

    title: str
    record: LedgerRecord
    seconds: float
    learned: float | None = None
    described: float | None = None
    first: float | None = None


@dataclass(frozen=True)
class Ending:
    scenes: list[Scene]
    turned: str
    turned_before: float
    turned_after: float
    newcomer: str
    newcomer_right: float
    newcomer_seconds: float
    answers: int
    dead: int

    @property
    def digests(self) -> list[str]:
        return [scene.record.generation or "" for scene in self.scenes]


class Audience(Protocol):
    """Whoever watches."""

    def doing(self, text: str) -> None: ...

    def saw(self, scene: Scene) -> None: ...


class Story:
    """Tells the world to the stream at `url` and has it questioned, with worker processes of its own."""

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

    def tell(self, audience: Audience) -> Ending:
        """All of it; the workers end with it, however it ends."""
        with connect(self._settings.bus) as bus:
            bus.create(self._topics.specs(self._partitions))
            with (
                self._workers(audience),
                closing(Feeder(bus, self._topics, self._world)) as feeder,
                closing(Asker(bus, self._topics, self._world, self._alive)) as asker,
            ):
                asker.wait_for_window(0)
                return self._scenes(audience, feeder, asker)

    def _scenes(self, audience: Audience, feeder: Feeder, asker: Asker) -> Ending:
        names = self._world.classes
        first, waiting, newcomer, second, third = names[:12], names[12:18], names[18], names[19:22], names[22:24]
        turned = waiting[0]
        scenes: list[Scene] = []

        def play(title: str, doing: str, learned: tuple[str, ...], described: tuple[str, ...]) -> dict[str, float]:
            audience.doing(doing)
            started = time.monotonic()
            self._number += 1
            record = asker.wait_for_window(self._number)
            asker.wait_for_generation(self._number)
            seconds = time.monotonic() - started
            audience.doing(f"asking about {len(learned) + len(described)} classes")
            right = asker.accuracy((*learned, *described), _QUESTIONS, f"g{self._number}") if learned else {}
            scene = Scene(
                title,
                record,
                seconds,
                _mean(right, learned),
                _mean(right, described),
                _mean(right, first) if learned else None,
            )
            scenes.append(scene)
            audience.saw(scene)
            return right

        feeder.describe((*first, *waiting))
        play("18 classes described", "18 descriptions sent; waiting for the learner", (), ())

        feeder.blunder(first[0])
        feeder.teach(first, _EXAMPLES, "first task")
        play("12 get examples", "480 examples sent; the learner trains", first, waiting)

        feeder.describe([newcomer])
        now = play("1 more described", "one description sent", first, (*waiting, newcomer))
        newcomer_seconds = scenes[-1].seconds

        feeder.describe(second)
        before = play("3 more described", "three descriptions sent", first, (*waiting, newcomer, *second))

        feeder.teach((turned, *second), _EXAMPLES, "second task")
        learned = (*first, turned, *second)
        after = play("4 get examples", "160 examples sent; the learner trains", learned, (*waiting[1:], newcomer))

        feeder.describe(third)
        play("2 more described", "two descriptions sent", learned, (*waiting[1:], newcomer, *third))

        feeder.teach(third, _EXAMPLES, "third task")
        play(
            "those 2 get examples",
            "80 examples sent; the learner trains",
            (*learned, *third),
            (*waiting[1:], newcomer),
        )

        dead = sum(
            sum(s.dead.values()) for scene in scenes for spans in scene.record.ranges.values() for s in spans.values()
        )
        return Ending(
            scenes,
            turned,
            before[turned],
            after[turned],
            newcomer,
            now[newcomer],
            newcomer_seconds,
            asker.answers,
            dead,
        )

    @contextmanager
    def _workers(self, audience: Audience) -> Iterator[None]:
        audience.doing("starting a learner and a scorer")
        commands = ["learn", *["score"] * self._scorers]
        try:
            for number, command in enumerate(commands):
                name = f"{command}-{number}"
                with (self._directory / f"{name}.log").open("wb") as output:
                    self._processes.append((name, together.start(command, self._settings, output)))
            yield
        finally:
            together.end([process for _, process in self._processes])

    def _alive(self) -> None:
        for name, process in self._processes:
            if process.poll() is not None:
                lines = (self._directory / f"{name}.log").read_text(errors="replace").strip().splitlines()
                told = lines[-1] if lines else "it said nothing"
                raise CgzslError(f"the {name} process ended with exit code {process.returncode}: {told}")


def _mean(right: dict[str, float], class_ids: tuple[str, ...]) -> float | None:
    return fmean(right[class_id] for class_id in class_ids) if right and class_ids else None
