"""The demo told once, on a SQLite file with one partition, for all tests that look at it."""

from __future__ import annotations

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
    directory: Path
    memory: Memory
    ending: Ending


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Told:
    directory = tmp_path_factory.mktemp("demo")
    url, memory = f"sqlite:///{directory}/demo.db", Memory()
    return Told(url, directory, memory, Story(url, "demo", directory, partitions=1).tell(memory))


@pytest.fixture
def memory() -> Memory:
    return Memory()
