"""A run on the screen, in a terminal and without one."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from small_runs import asked

from stream_cgzsl.benchmark.runs.progress import TaskResult
from stream_cgzsl.benchmark.runs.screen import Screen, shown_losses
from stream_cgzsl.benchmark.task import Task
from stream_cgzsl.schemas import Evaluation, LedgerRecord

ZEROS = "0" * 64


class Clock:
    """Ten seconds pass between two calls."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 10
        return self.now


def window(number: int, unseen: float | None = 0.5, error: str | None = None) -> TaskResult:
    record = LedgerRecord(
        number=number,
        kind="failed" if error else "train",
        reason="task",
        configuration_digest=ZEROS,
        code="0",
        seen=2 * number,
        unseen=number,
        losses={"rcl": 0.25},
        error=error,
    )
    evaluation = Evaluation(generation=number, digest=ZEROS, samples=1, seen=0.75, unseen=unseen)
    return TaskResult(Task(number, (), ()), record, evaluation)


def shown(terminal: bool, *windows: TaskResult, learned: int = 0) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=100, color_system=None)
    with Screen(console, Clock()) as screen:
        screen.run_started(asked(), learned)
        screen.progress("learning task 1")
        for one in windows:
            screen.task_done(one, 1.234)
    return output.getvalue()


def test_without_a_terminal_there_is_a_line_per_window() -> None:
    title = asked().title
    assert shown(False, window(1), window(2, unseen=None)).splitlines() == [
        f"{title}, 4 tasks",
        "window 1/4, classes 2+1, seen 75.0 %, unseen 50.0 %, harmonic 60.0 %, trained 1.23 s, losses rcl 0.25; "
        "about 30 s left",
        "window 2/4, classes 4+2, seen 75.0 %, trained 1.23 s, losses rcl 0.25; about 20 s left",
    ]


def test_a_resumed_run_estimates_the_time_left_from_what_it_did_since() -> None:
    lines = shown(False, window(1), window(2), learned=1).splitlines()
    assert lines[0].endswith("4 tasks, 1 already learned")
    assert [line.rpartition("; ")[2] for line in lines[1:]][1] == "about 20 s left"
    assert "left" not in lines[1]


def test_a_terminal_ends_with_the_whole_table() -> None:
    table = shown(True, window(1), window(2, error="TrainingFailed: not finite")).rpartition("window")[2]
    rows = [line.split() for line in table.splitlines() if "/4" in line]
    assert rows == [
        ["1/4", "2+1", "75.0", "%", "50.0", "%", "60.0", "%", "1.23", "s", "rcl", "0.25"],
        ["2/4", "4+2", "75.0", "%", "50.0", "%", "60.0", "%", "1.23", "s", "TrainingFailed:", "not", "finite"],
    ]


def test_a_terminal_shows_what_is_being_done() -> None:
    assert "learning task 1" in shown(True)


@pytest.mark.parametrize(
    ("losses", "text"),
    [
        ({}, ""),
        ({"rcl": 0.12345}, "rcl 0.123"),
        ({"gan_d": -2.0, "pcl": 0.1, "rcl": 1.0, "sal": 0.01, "snl": 5.0}, "gan_d -2  rcl 1  snl 5"),
    ],
)
def test_the_largest_losses_are_shown_by_name(losses: dict[str, float], text: str) -> None:
    assert shown_losses(losses) == text
