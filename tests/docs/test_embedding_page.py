"""The examples of docs/embedding.md, run unchanged against a stream with one window."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stream_cgzsl.benchmark.synthetic_world import World
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main
from stream_cgzsl.schemas import Attribute, Feature, encode
from stream_cgzsl.windows.producer import send_boundary

PAGE = Path(__file__).parents[2] / "docs" / "embedding.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A learned stream of that name in the folder where the examples run."""
    from helpers import learner, settings_for, wait_for_window

    monkeypatch.chdir(tmp_path)
    topics, world = Topics("birds"), World()
    with connect("sqlite:///birds.db") as bus:
        bus.create(topics.specs())
        with bus.writer() as writer:
            for name in world.classes[:6]:
                event = Attribute(class_id=name, vector=world.attribute(name))
                writer.send(topics["attributes"], encode(event))
                for row in world.draw(name, 10, 1) if name != world.classes[5] else ():
                    writer.send(topics["features"], encode(Feature(class_id=name, vector=row)))
        send_boundary(bus, topics)
        with learner(settings_for(bus, topics, attributes=32, features=128, quiet_seconds=1e6)) as worker:
            wait_for_window(bus, 1, topics, worker.alive)


@pytest.mark.usefixtures("birds")
def test_every_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLES) == 2
    exec(compile(EXAMPLES[0], str(PAGE), "exec"), {})
    assert " ahead of " in capsys.readouterr().out
    [command] = re.findall(r"`stream-cgzsl (export .*?)`", PAGE.read_text())
    assert main(command.split()) == 0
    capsys.readouterr()
    exec(compile(EXAMPLES[1], str(PAGE), "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 3
