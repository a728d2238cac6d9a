"""docs/data.md: its commands run, its snippets do what they say, and its tables agree with the code."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import wait_for_window
from scipy.io import savemat
from small_data import data as small
from small_data import known_folder

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.datasets.known import KNOWN
from stream_cgzsl.benchmark.protocols import plan_for
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
COMMANDS = re.findall(r"^\$ stream-cgzsl (.*)$", PAGE, flags=re.MULTILINE)
FEEDS = [command for command in COMMANDS if command.startswith("feed")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the folders that the page mentions."""
    cub = known_folder(tmp_path / "data", "CUB")
    rows = 2 * KNOWN["CUB"].classes
    labels = np.concatenate([np.arange(200), np.arange(200)])[None] + 1
    savemat(cub / "clip.mat", {"features": np.ones((5, rows)), "labels": labels})
    (cub / "sent_splits.mat").write_bytes((cub / "att_splits.mat").read_bytes())
    (tmp_path / "birds").mkdir()
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[0], {})
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", FEEDS)
def test_every_feed_runs(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)) == 0
    out, err = capsys.readouterr()
    assert err == "" and re.search(r"^task \d+ of \d+: ", out, flags=re.MULTILINE)


@pytest.mark.usefixtures("here")
def test_the_stream_of_the_page_learns_its_feed(capsys: pytest.CaptureFixture[str]) -> None:
    """`feed` prints the command that the page shows, and that command learns the three tasks."""
    feed = next(command for command in FEEDS if " birds " in command)
    (up,) = [command for command in COMMANDS if command.startswith("up")]
    assert main(shlex.split(feed)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"to learn it: stream-cgzsl {up}"
    with Path("up.log").open("w") as log, connect("sqlite:///birds.db") as bus:
        command = [sys.executable, "-m", "stream_cgzsl", *shlex.split(up)]
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as child:
            try:
                record = wait_for_window(bus, 3, Topics("birds"))
            finally:
                child.send_signal(signal.SIGINT)
    assert (record.kind, record.seen, record.unseen, child.returncode) == ("train", 8, 4, 0)


def test_the_tables_in_the_text_are_data(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("") if block.startswith("birds/features.csv")]
    folder = tmp_path / "birds"
    folder.mkdir()
    split = block.index("birds/attributes.csv")
    lines = [(line[:split].strip(), line[split:].strip()) for line in block.splitlines()[1:]]
    for side, name in enumerate(("features", "attributes")):
        (folder / f"{name}.csv").write_text("\n".join(line[side] for line in lines if line[side]) + "\n")
    data = load(folder)
    assert (data.seen_pool, data.unseen_pool) == (("heron",), ("puffin",))
    assert (data.features.shape, data.attributes.shape) == ((3, 3), (2, 2))


@pytest.mark.parametrize("name", ["AWA1", "AWA2", "aPY", "CUB", "SUN"])
def test_the_table_of_splits_is_the_codes(name: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if re.match(rf"\| [\w, ]*\b{name}\b[\w, ]* \| \d+ x", line)]
    data = small(KNOWN[name].seen, KNOWN[name].unseen, name)
    static, dynamic, online = (plan_for(data, setting) for setting in ("static", "dynamic", "online"))
    assert [cell.strip() for cell in row.strip("|").split("|")][1:] == [
        f"{static.tasks} x {static.seen}",
        f"{dynamic.tasks} x ({dynamic.seen} + {dynamic.unseen})",
        f"{online.tasks} x ({online.seen - 1} + {online.unseen + 1})",
    ]
