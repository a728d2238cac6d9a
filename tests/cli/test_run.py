"""The command `run`: what it prints and writes, and one clear line for every mistake."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_SECONDS

from stream_cgzsl.cli import main
from stream_cgzsl.runtime.settings import Settings

pytestmark = pytest.mark.slow

DATA = "synthetic:classes=12,unseen=4,attributes=8,features=16,rows=10,test=5"
QUICK = ("--tasks", "3", "--learner", "closed-form")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Variables and settings files of the machine that runs the tests have no effect."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CGZSL_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and the one line on standard error of a command that fails."""
    code = main(arguments)
    err = capsys.readouterr().err
    lines = err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("stream-cgzsl: "), err
    return code, lines[0].removeprefix("stream-cgzsl: ")


def digests(folder: Path) -> list[str]:
    return [window["digest"] for window in json.loads((folder / "report.json").read_text())["windows"]]


# ---- what is printed and written


def test_a_run_prints_a_line_per_window_and_writes_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", DATA, *QUICK, "--out", "one"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0].endswith("online: closed-form, 3 tasks")
    assert [line.split(",")[0] for line in lines[1:4]] == ["window 1/3", "window 2/3", "window 3/3"]
    assert lines[4].startswith("as of each window   mSA / mUA / mH  ")
    assert lines[-1] == "files               one/metrics.json  one/report.html"
    files = {path.name for path in Path("one").iterdir() if not path.name.startswith("run.")}
    assert files == {"metrics.json", "report.json", "report.html"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "one"
    assert main(["run", DATA, *QUICK, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def one(finished: Path) -> None:
    """The folder `one` has a finished run."""
    shutil.copytree(finished, "one")


@pytest.mark.usefixtures("one")
def test_a_finished_run_is_printed_again_and_not_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in Path("one").iterdir()}
    assert main(["run", DATA, *QUICK, "--out", "one"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0].split()[:4], lines[-1].split()[0]) == (["as", "of", "each", "window"], "files")
    assert {path.name: path.stat().st_mtime_ns for path in Path("one").iterdir()} == before


def test_settings_reach_the_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGZSL_LEARNER", "ridge")
    command = ["run", DATA, "--setting", "dynamic", "--tasks", "2", "--seen", "3", "--unseen", "1", "--order-seed", "5"]
    main([*command, "--seed", "4", "--bus", "sqlite:///bus.db", "--prefix", "p", "--out", "one"])
    capsys.readouterr()
    document = json.loads(Path("one/report.json").read_text())
    assert (document["learner"], document["seed"], document["bus"]) == ("ridge", 4, "sqlite:///bus.db")
    assert {name: document["settings"][name] for name in ("tasks", "seen", "unseen", "order", "prefix")} == {
        **{"tasks": 2, "seen": 3, "unseen": 1},
        **{"order": 5, "prefix": "p"},
    }
    assert document["command"] == (
        f"stream-cgzsl run {DATA} --setting dynamic --out one --tasks 2 --seen 3 --unseen 1 --order-seed 5 "
        "--bus sqlite:///bus.db --prefix p --learner ridge --seed 4"
    )
    assert not Path("one/run.db").exists()


def test_a_trickle_prints_accuracy_by_number_of_examples(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--windows", "3", "--window-size", "20", "--never-share", "0.1"]
    assert main(["run", DATA, "--setting", "trickle", *sizes, "--learner", "ridge", "--out", "one"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("all classes")]
    assert re.fullmatch(r"all classes +[\d.]+ %; by number of examples  0: [\d.]+  1-2: .*", line)
    document = json.loads(Path("one/report.json").read_text())
    assert (document["settings"]["window_size"], document["settings"]["never_share"]) == (20, 0.1)
    assert document["command"].endswith(
        "--setting trickle --out one --tasks 3 --window-size 20 --never-share 0.1 --learner ridge"
    )


@pytest.mark.usefixtures("one")
def test_a_page_can_be_written_again(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path("one/report.html").read_text()
    Path("one/report.html").unlink()
    assert main(["report", "one"]) == 0
    assert (capsys.readouterr().out, Path("one/report.html").read_text()) == ("one/report.html\n", page)


# ---- mistakes


@pytest.mark.usefixtures("one")
def test_another_run_in_the_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert fails(capsys, "run", DATA, *QUICK, "--setting", "static", "--out", "one") == (
        2,
        "one has another run: its setting is 'online', and the request says 'static'; choose another --out, or request "
        "the same run",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["run", "nowhere", "--out", "one"], 2, "there is no data set 'nowhere'"),
        (["run", DATA, "--learner", "oracle", "--out", "one"], 2, "there is no learner 'oracle'"),
        (["run", DATA, "--learner", "joint", "--out", "one"], 2, "'joint' keeps every example"),
        (["run", DATA, "--tasks", "9", "--out", "one"], 2, "synthetic:"),
        (["run", DATA, "--bus", "redis://here", "--out", "one"], 2, "unknown kind of bus 'redis'"),
        (["run", DATA, "--bus", "sqlite:///none/x.db", "--out", "one"], 3, "sqlite:///none/x.db: the folder none"),
        (["run", DATA, "--bus", "kafka://localhost:1", "--out", "one"], 3, "kafka://localhost:1: "),
        (["run", DATA, "--device", "abacus", "--out", "one"], 2, "there is no device 'abacus'"),
        (["run", DATA, "--out", "/proc/one"], 2, "cannot write to /proc/one: "),
        (["report", "one"], 2, "there is no one/report.json"),
        (["study", "learners", DATA, "--learner", "ridge", "--out", "one"], 2, "`study learners` runs every learner"),
        (
            ["study", "ablation", DATA, "--learner", "ridge", "--out", "one"],
            2,
            "learner 'ridge' has no option 'nuclear'",
        ),
        (["study", "seeds", DATA, "--counts", "1,2", "--out", "one"], 2, "--counts is for `study replay`"),
        (["study", "few-shot", DATA, "--counts", "1,2", "--out", "one"], 2, "--counts is for `study replay`"),
        (["study", "seeds", DATA, "--shots", "1,2", "--out", "one"], 2, "--shots is for `study few-shot`"),
        (["study", "few-shot", DATA, "--tasks", "2", "--out", "one"], 2, "--tasks is not for `study few-shot`: it "),
        (
            ["study", "few-shot", DATA, "--setting", "online", "--out", "one"],
            2,
            "--setting is not for `study few-shot`",
        ),
        (["study", "few-shot", DATA, "--learner", "ridge", "--out", "one"], 2, "`study few-shot` runs --learners with"),
        (["study", "few-shot", DATA, "--learners", "oracle", "--out", "one"], 2, "there is no learner 'oracle'"),
        (["study", "few-shot", DATA, "--shots", "9", "--out", "one"], 2, "--shots 9: an unseen class of synthetic:"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, line: str) -> None:
    found, error = fails(capsys, *arguments)
    assert (found, error.startswith(line)) == (code, True), error


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", DATA],
        ["run", DATA, "--setting", "sometimes", "--out", "one"],
        ["run", DATA, "--tasks", "0", "--out", "one"],
        ["study", "luck", DATA, "--out", "one"],
        ["study", "replay", DATA, "--counts", "1,-2", "--out", "one"],
        ["study", "seeds", DATA, "--seeds", "0", "--out", "one"],
        ["study", "few-shot", DATA, "--draws", "0", "--out", "one"],
        ["study", "few-shot", DATA, "--shots", "1,1", "--out", "one"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_explained_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert (err.startswith("stream-cgzsl"), err.count("\n")) == (True, 1), err


@pytest.mark.usefixtures("one")
def test_features_of_another_size_than_the_streams_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    wide = DATA.replace("features=16", "features=20")
    code, line = fails(capsys, "run", wide, *QUICK, "--bus", "sqlite:///one/run.db", "--out", "two")
    assert (code, "started with features of 16 numbers" in line and "have 20" in line) == (2, True), line


# ---- disks


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A separate disk with hardly any room."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"only root can mount a disk to fill: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_is_one_line_and_with_more_room_the_run_resumes(
    capsys: pytest.CaptureFixture[str], tiny_disk: Path
) -> None:
    command = ("run", DATA, *QUICK, "--out")
    code, line = fails(capsys, *command, str(tiny_disk / "one"))
    full = "database or disk is full; the disk is full: free some space, nothing acknowledged was lost"
    assert (code, line) == (3, f"sqlite:///{tiny_disk}/one/run.db: {full}")
    subprocess.run(["mount", "-o", "remount,size=64m", tiny_disk], check=True)
    assert main([*command, str(tiny_disk / "one")]) == main([*command, "whole"]) == 0
    assert digests(tiny_disk / "one") == digests(Path("whole"))


def test_no_room_for_the_report_is_one_line_and_the_run_can_be_resumed(
    capsys: pytest.CaptureFixture[str], tiny_disk: Path
) -> None:
    out = str(tiny_disk / "one")
    command = ("run", DATA, *QUICK, "--bus", "sqlite:///bus.db", "--out", out)
    (tiny_disk / "ballast").write_bytes(bytes(240 * 1024))
    code, line = fails(capsys, *command)
    assert (code, line.endswith("No space left on device; free some space, or choose another place")) == (2, True), line
    (tiny_disk / "ballast").unlink()
    assert main(command) == 0
    assert sorted(path.name for path in Path(out).glob("*.json")) == ["metrics.json", "report.json", "run.json"]


def test_a_read_only_folder_is_one_line(capsys: pytest.CaptureFixture[str], tiny_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    code, line = fails(capsys, "run", DATA, *QUICK, "--out", str(tiny_disk / "one"))
    assert (code, line) == (2, f"cannot write to {tiny_disk}/one: Read-only file system; choose another --out")


# ---- Ctrl-C


def test_an_interrupted_run_says_how_to_resume_and_resumes(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--options hidden=64 --options max_iterations=120"
    slow = ["run", DATA, "--tasks", "3", "--learner", "adversarial", *options.split(), "--out", "one"]
    script = Path(sys.executable).with_name("stream-cgzsl")
    with subprocess.Popen([script, *slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if line.startswith("window 1/3"):
                break
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        error = process.stderr.read()
    command = f"stream-cgzsl run {DATA} --setting online --out one --tasks 3 --learner adversarial"
    assert (process.returncode, error) == (130, f"stream-cgzsl: interrupted; resume with: {command} {options}\n")
    assert not Path("one/metrics.json").exists()
    assert main(slow) == 0
    assert re.search("3 tasks, [12] already learned", capsys.readouterr().out)
    assert main([*slow[:-1], "whole"]) == 0
    assert digests(Path("one")) == digests(Path("whole"))
