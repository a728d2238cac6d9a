"""The demo runs to its end, and what it shows is true."""

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
from stream_cgzsl.demo.scenario import Demo
from stream_cgzsl.demo.screen import Screen, next_steps, summary
from stream_cgzsl.errors import CgzslError
from stream_cgzsl.history.check import check
from stream_cgzsl.windows import ledger


def test_the_observer_is_told_of_every_step(demo: Any) -> None:
    assert demo.memory.steps == demo.result.steps
    assert len(demo.memory.texts) > len(demo.memory.steps)


def test_every_step_became_a_window(demo: Any) -> None:
    with connect(demo.url) as bus:
        records = ledger.read_all(bus, Topics(demo.prefix))
        found = check(bus, Topics(demo.prefix))
    assert [step.record for step in demo.result.steps] == records[1:]
    assert demo.result.digests == [record.generation for record in records[1:]]
    assert [(r.kind, r.seen, r.unseen) for r in records[1:]] == [
        ("describe", 0, 18),
        ("train", 12, 6),
        ("describe", 12, 7),
        ("describe", 12, 10),
        ("train", 16, 6),
        ("train", 16, 6),
        ("describe", 16, 8),
        ("train", 18, 6),
    ]
    assert (found.problems, found.dead, found.waiting) == ([], 1, 0)


def test_classes_without_an_example_are_recognised_well_above_chance(demo: Any) -> None:
    accuracies = [step.unseen for step in demo.result.steps if step.unseen is not None]
    assert len(accuracies) == 7
    assert fmean(accuracies) > 0.5  # chance: 1 in 18 to 1 in 24
    assert demo.result.newcomer_accuracy > 0.4


def test_learned_classes_are_recognised_and_not_forgotten(demo: Any) -> None:
    first = [step.first for step in demo.result.steps if step.first is not None]
    assert first[0] > 0.7
    assert first[0] - min(first) < 0.1


def test_one_example_makes_described_classes_better_and_many_still_better(demo: Any) -> None:
    result = demo.result
    assert result.converted_described < result.converted_one < result.converted_many
    assert result.converted_many > 0.8


def test_every_sample_was_answered_and_the_broken_record_dead_lettered(demo: Any) -> None:
    asked = sum(18 + more for more in (0, 1, 4, 4, 4, 6, 6)) * 25
    assert demo.result.answers >= asked
    assert demo.result.dead_letters == 1


def test_the_screen_shows_the_steps_a_summary_and_commands(demo: Any) -> None:
    result, console = demo.result, Console(width=200, file=StringIO())
    with Screen(console) as screen:
        for step in result.steps:
            screen.step_done(step)
    console.print(summary(result))
    console.print(next_steps(demo.url, demo.prefix, demo.directory), soft_wrap=True, highlight=False)
    text = console.file.getvalue()
    assert [s.title for s in result.steps if s.title not in text] == []
    assert [d for d in result.digests if d[:7] not in text] == []
    assert f"{result.newcomer.replace('-', ' ')} was described while the stream was idle" in text
    assert f"--bus {demo.url} --prefix {demo.prefix}" in text


def test_the_workers_logs_are_kept_and_have_no_errors(demo: Any) -> None:
    logs = {path.name: path.read_text() for path in demo.directory.glob("*.log")}
    assert set(logs) == {"learn-0.log", "score-1.log"}
    assert [name for name, text in logs.items() if "Traceback" in text or "ERROR" in text] == []


def test_a_worker_that_ends_ends_the_demo_with_its_last_log_line(tmp_path: Path, memory: Any) -> None:
    failing = Demo(f"sqlite:///{tmp_path}/demo.db", "demo", tmp_path, learner="oracle")
    with pytest.raises(CgzslError, match=r"the learn-0 process ended with exit code 2: .*no learner 'oracle'"):
        failing.run(memory)


def test_the_command_refuses_what_cannot_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--bus", "sqlite:///no/such/folder/x.db"]) == 3
    assert "the folder no/such/folder does not exist" in capsys.readouterr().err
