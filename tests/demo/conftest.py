"""The demo, told once on each bus for all tests that look at it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stream_cgzsl.demo.story import Ending, Scene, Story


@dataclass
class Memory:
    """An audience that remembers."""

    told: list[str] = field(default_factory=list)
    scenes: list[Scene] = field(default_factory=list)

    def doing(self, text: str) -> None:
        self.told.append(text)

    def saw(self, scene: Scene) -> None:
        self.scenes.append(scene)


@dataclass(frozen=True)
class Told:
    url: str
    prefix: str
    directory: Path
    memory: Memory
    ending: Ending


def tell(url: str, prefix: str, directory: Path, partitions: int) -> Told:
    memory = Memory()
    return Told(url, prefix, directory, memory, Story(url, prefix, directory, partitions).tell(memory))


Tellings = Callable[[Callable[[Path], str]], dict[int, Told]]


@pytest.fixture(scope="session")
def tell_with(tmp_path_factory: pytest.TempPathFactory) -> Tellings:
    """Tells the demo with one and with four partitions, side by side: most of it is waiting."""

    def both(url_in: Callable[[Path], str]) -> dict[int, Told]:
        prefix = f"demo-{uuid.uuid4().hex[:8]}"
        with ThreadPoolExecutor() as pool:
            started = {}
            for partitions in (1, 4):
                directory = tmp_path_factory.mktemp(f"demo-{partitions}-")
                url = url_in(directory)
                started[partitions] = pool.submit(tell, url, f"{prefix}-{partitions}", directory, partitions)
            return {partitions: future.result() for partitions, future in started.items()}

    return both


@pytest.fixture(scope="session")
def on_sqlite(tell_with: Tellings) -> dict[int, Told]:
    return tell_with(lambda directory: f"sqlite:///{directory}/demo.db")


@pytest.fixture(scope="session")
def demo(on_sqlite: dict[int, Told]) -> Told:
    return on_sqlite[1]


@pytest.fixture
def memory() -> Memory:
    return Memory()
