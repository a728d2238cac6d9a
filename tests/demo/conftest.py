"""The demo, run once on each bus for all tests of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stream_cgzsl.demo.scenario import Demo, DemoResult, Step


@dataclass
class Memory:
    """An observer that remembers."""

    texts: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def progress(self, text: str) -> None:
        self.texts.append(text)

    def step_done(self, step: Step) -> None:
        self.steps.append(step)


@dataclass(frozen=True)
class Finished:
    url: str
    prefix: str
    directory: Path
    memory: Memory
    result: DemoResult


def run_demo(url: str, prefix: str, directory: Path, partitions: int) -> Finished:
    memory = Memory()
    return Finished(url, prefix, directory, memory, Demo(url, prefix, directory, partitions).run(memory))


RunDemos = Callable[[Callable[[Path], str]], dict[int, Finished]]


@pytest.fixture(scope="session")
def run_demos(tmp_path_factory: pytest.TempPathFactory) -> RunDemos:
    """Runs the demo with one and with four partitions at the same time: most of it is waiting."""

    def both(url_in: Callable[[Path], str]) -> dict[int, Finished]:
        prefix = f"demo-{uuid.uuid4().hex[:8]}"
        with ThreadPoolExecutor() as pool:
            started = {}
            for partitions in (1, 4):
                directory = tmp_path_factory.mktemp(f"demo-{partitions}-")
                url = url_in(directory)
                started[partitions] = pool.submit(run_demo, url, f"{prefix}-{partitions}", directory, partitions)
            return {partitions: future.result() for partitions, future in started.items()}

    return both


@pytest.fixture(scope="session")
def on_sqlite(run_demos: RunDemos) -> dict[int, Finished]:
    return run_demos(lambda directory: f"sqlite:///{directory}/demo.db")


@pytest.fixture(scope="session")
def demo(on_sqlite: dict[int, Finished]) -> Finished:
    return on_sqlite[1]


@pytest.fixture
def memory() -> Memory:
    return Memory()
