"""The command `feed`: what it prints, how it stops, and its errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import read
from patience import PATIENCE_SECONDS

from stream_cgzsl.benchmark import protocols
from stream_cgzsl.benchmark.trickle import TRICKLE
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import data_flags, main

pytestmark = pytest.mark.slow

DATA = "synthetic:classes=8,unseen=2,attributes=8,features=16,rows=6,test=3"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Variables and settings files of the machine that runs the tests have no effect."""
    for name in [name for name in os.environ if name.startswith("CGZSL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_the_flag_offers_every_setting() -> None:
    assert (*protocols.SETTINGS, TRICKLE) == data_flags.SETTINGS


def test_it_prints_each_task_and_how_to_learn_it(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["feed", DATA, "--setting", "online", "--bus", "sqlite:///a.db", "--prefix", "a", "--partitions", "2"]
    assert main(command) == 0
    learning = "to learn it: stream-cgzsl up --bus sqlite:///a.db --prefix a --attributes 8 --features 16"
    assert capsys.readouterr() == (
        "task 1 of 2: 4 classes described, 2 with examples, 28 records\n"
        "task 2 of 2: 4 classes described, 3 with examples, 34 records\n"
        f"{learning}\n",
        "",
    )
    assert main(command) == 0
    assert capsys.readouterr() == (f"2 of 2 tasks are already on sqlite:///a.db\n{learning}\n", "")


def test_a_trickle_is_fed_window_by_window(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["feed", DATA, "--setting", "trickle", "--windows", "4", "--window-size", "5", "--never-share", "0.25"]
    command += ["--order-seed", "3", "--bus", "sqlite:///a.db"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines[:4]] == [f"task {number} of 4" for number in range(1, 5)]
    with connect("sqlite:///a.db") as bus:
        counts = {role: len(read(bus, Topics()[role])) for role in ("holdout", "attributes", "features", "control")}
    assert counts == {"holdout": 20, "attributes": 8, "features": 20, "control": 4}
    assert main([*command, "--never-share", "0.5"]) == 2
    assert "trickle 4x5 never 0.25 order 3 task 1'; expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing-here"], "there is no data set 'nothing-here': no folder has that path, and none in "),
        (
            ["synthetic:colour=1"],
            "synthetic:colour=1: found 'colour=1'; expected name=number, where name is one of classes, ",
        ),
        (
            [DATA, "--tasks", "9"],
            "synthetic:classes=8,unseen=2,attributes=8,features=16,rows=6,test=3,seed=7: 9 tasks of 0",
        ),
        ([DATA, "--bus", "redis://here"], "unknown kind of bus 'redis'"),
        ([DATA, "--window-size", "3"], "--window-size has no meaning in the online setting: leave it out"),
        ([DATA, "--setting", "static", "--never-share", "0"], "--never-share has no meaning in the static setting"),
        ([DATA, "--setting", "trickle", "--unseen", "2"], "--unseen has no meaning in the trickle setting"),
        ([DATA, "--setting", "trickle", "--never-share", "1"], "--never-share 1: expected a number from 0 that leaves"),
    ],
)
def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    assert main(["feed", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith(f"stream-cgzsl: {line}")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [DATA, "--setting", "never"],
        [DATA, "--rate", "0"],
        [DATA, "--rate", "fast"],
        [DATA, "--rate", "nan"],
        [DATA, "--order-seed", "-1"],
        [DATA, "--unseen", "-1"],
        [DATA, "--tasks", "0"],
        [DATA, "--setting", "trickle", "--windows", "0"],
        [DATA, "--setting", "trickle", "--window-size", "0"],
        [DATA, "--setting", "trickle", "--never-share", "some"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_explained_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["feed", *arguments])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("stream-cgzsl feed: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_and_the_same_command_resumes(number: signal.Signals) -> None:
    slow = [sys.executable, "-m", "stream_cgzsl", "feed", DATA, "--bus", "sqlite:///a.db", "--rate", "8/s"]
    with subprocess.Popen(slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        wait_for_records()
        child.send_signal(number)
        out, err = child.communicate(timeout=PATIENCE_SECONDS)
    assert (child.returncode, out) == (130, "")
    assert err.splitlines() == ["stream-cgzsl: run the same command again to resume", "stream-cgzsl: interrupted"]
    assert main(["feed", DATA, "--bus", "sqlite:///a.db"]) == 0
    with connect("sqlite:///a.db") as bus:
        counts = {role: len(read(bus, Topics()[role])) for role in ("holdout", "attributes", "features", "control")}
    assert counts == {"holdout": 24, "attributes": 8, "features": 30, "control": 2}


def wait_for_records() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if Path("a.db").exists():
            with connect("sqlite:///a.db") as bus:
                if "cgzsl.holdout" in bus.topics() and sum(bus.end_offsets("cgzsl.holdout").values()) >= 3:
                    return
        time.sleep(0.1)
    raise AssertionError("nothing was fed")
