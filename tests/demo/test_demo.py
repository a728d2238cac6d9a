"""The first five minutes: the story is told to its end, and what it says of itself is true."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from rich.console import Console

from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main
from stream_cgzsl.demo.screen import Screen, last_page, next_steps
from stream_cgzsl.demo.story import Story
from stream_cgzsl.errors import CgzslError
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.check import check


def test_the_audience_sees_every_scene(demo: Any) -> None:
    assert demo.memory.scenes == demo.ending.scenes
    assert len(demo.memory.told) > len(demo.memory.scenes)


def test_every_scene_became_a_window(demo: Any) -> None:
    with connect(demo.url) as bus:
        records = ledger.read_all(bus, Topics(demo.prefix))
        found = check(bus, Topics(demo.prefix))
    assert [scene.record for scene in demo.ending.scenes] == records[1:]
    assert demo.ending.digests == [record.generation for record in records[1:]]
    assert [(r.kind, r.seen, r.unseen) for r in records[1:]] == [
        ("describe", 0, 18),
        ("train", 12, 6),
        ("describe", 12, 7),
        ("describe", 12, 10),
        ("train", 16, 6),
        ("describe", 16, 8),
        ("train", 18, 6),
    ]
    assert (found.problems, found.dead, found.waiting) == ([], 1, 0)


def test_classes_without_an_example_are_recognised_well_above_chance(demo: Any) -> None:
    shares = [scene.described for scene in demo.ending.scenes if scene.described is not None]
    assert len(shares) == 6
    assert fmean(shares) > 0.5  # guessing: 1 in 18 to 1 in 24
    assert demo.ending.newcomer_right > 0.4


def test_learned_classes_are_recognised_and_not_forgotten(demo: Any) -> None:
    first = [scene.first for scene in demo.ending.scenes if scene.first is not None]
    assert first[0] > 0.7
    assert first[0] - min(first) < 0.1


def test_a_class_becomes_better_known_when_it_is_learned(demo: Any) -> None:
    assert demo.ending.turned_after >= max(0.8, demo.ending.turned_before)


def test_everybody_was_answered_and_the_blunder_was_buried(demo: Any) -> None:
    asked = sum(18 + more for more in (0, 1, 4, 4, 6, 6)) * 25
    assert demo.ending.answers >= asked
    assert demo.ending.dead == 1


def test_the_last_page_says_what_happened_and_what_to_type(demo: Any) -> None:
    ending, console = demo.ending, Console(width=200, file=StringIO())
    with Screen(console) as screen:
        for scene in ending.scenes:
            screen.saw(scene)
    console.print(last_page(ending))
    console.print(next_steps(demo.url, demo.prefix, demo.directory), soft_wrap=True, highlight=False)
    text = console.file.getvalue()
    assert [s.title for s in ending.scenes if s.title not in text] == []
    assert [d for d in ending.digests if d[:7] not in text] == []
    assert f"{ending.newcomer.replace('-', ' ')} was described while the stream was idle" in text
    assert f"--bus {demo.url} --prefix {demo.prefix}" in text


def test_the_workers_logs_are_kept_and_hold_no_surprises(demo: Any) -> None:
    logs = {path.name: path.read_text() for path in demo.directory.glob("*.log")}
    assert set(logs) == {"learn-0.log", "score-1.log"}
    assert [name for name, text in logs.items() if "Traceback" in text or "ERROR" in text] == []


def test_a_worker_that_ends_ends_the_story_with_its_last_words(tmp_path: Path, memory: Any) -> None:
    story = Story(f"sqlite:///{tmp_path}/demo.db", "demo", tmp_path, learner="oracle")
    with pytest.raises(CgzslError, match=r"the learn-0 process ended with exit code 2: .*no learner 'oracle'"):
        story.tell(memory)


def test_the_command_refuses_what_cannot_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--bus", "sqlite:///no/such/folder/x.db"]) == 3
    assert "the folder no/such/folder does not exist" in capsys.readouterr().err
