"""The units: systemd reads them, finds them locked down, and they start commands of ours."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from our_commands import DEPLOY, settings_of

from stream_cgzsl import errors

SYSTEMD = DEPLOY / "systemd"
UNITS = {"learner": ("learn", 9101), "scorer": ("score", 9102), "evaluator": ("evaluate", 9103)}
MOST_EXPOSED = 2.0  # of 10, as `systemd-analyze security` counts


def unit(name: str) -> dict[str, list[str]]:
    """The values of each setting, in their order."""
    found: dict[str, list[str]] = {}
    for line in (SYSTEMD / f"stream-cgzsl-{name}@.service").read_text().splitlines():
        key, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units with a program that exists on any machine, and as instances."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    for name in UNITS:
        text = (SYSTEMD / f"stream-cgzsl-{name}@.service").read_text()
        ours = text.replace("/opt/stream-cgzsl/bin/stream-cgzsl", "/bin/true")
        (tmp_path / f"stream-cgzsl-{name}@birds.service").write_text(ours)
    (tmp_path / "stream-cgzsl@birds.target").write_text((SYSTEMD / "stream-cgzsl@.target").read_text())
    drop_ins = tmp_path / "stream-cgzsl-learner@birds.service.d"
    drop_ins.mkdir()
    for name in ("kafka-password.conf", "gpu.conf"):
        (drop_ins / name).write_text((SYSTEMD / name).read_text())
    return tmp_path


def test_systemd_reads_them(installed: Path) -> None:
    names = sorted(path.name for path in installed.iterdir() if path.is_file())
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(f"./{name}" for name in names)],
        cwd=installed,
        capture_output=True,
        text=True,
    )
    ours = [line for line in checked.stderr.splitlines() if "stream-cgzsl" in line]
    assert (ours, checked.returncode) == ([], 0), checked.stderr


@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_them_locked_down(installed: Path, name: str) -> None:
    checked = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", f"./stream-cgzsl-{name}@birds.service"],
        cwd=installed,
        capture_output=True,
        text=True,
    )
    level = re.search(r"exposure level.*: ([\d.]+)", checked.stdout)
    if level is None:
        pytest.skip(f"this systemd cannot rate units that are not installed: {checked.stderr.strip()[:200]}")
    assert float(level.group(1)) <= MOST_EXPOSED


@pytest.mark.parametrize(("name", "command", "port"), [(name, *what) for name, what in UNITS.items()])
def test_they_start_our_commands(name: str, command: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = unit(name)
    [start] = values["ExecStart"]
    program, *arguments = shlex.split(start)
    assert (program, arguments) == ("/opt/stream-cgzsl/bin/stream-cgzsl", [command])
    environment = dict(pair.split("=", 1) for line in values["Environment"] for pair in shlex.split(line))
    example = (SYSTEMD / "example.env").read_text().splitlines()
    environment |= dict(line.split("=", 1) for line in example if line and not line.startswith("#"))
    settings = settings_of(arguments, environment, monkeypatch)
    assert (settings.prefix, settings.port, settings.attributes) == ("%i", port, 312)


@pytest.mark.parametrize("name", UNITS)
def test_a_worker_that_a_restart_cannot_help_is_not_restarted(name: str) -> None:
    """By exit code: an unavailable bus and a lost lock are worth a restart, the rest needs a person."""
    [stopped] = unit(name)["RestartPreventExitStatus"]
    wanted = {
        *(errors.UsageError, errors.Refused, errors.TopicMissing, errors.TopicMisconfigured),
        *(errors.Expired, errors.BrokenLedger, errors.TooManyDeadLetters),
    }
    assert {int(code) for code in stopped.split()} == {error.exit_code for error in wanted}
    assert not {str(errors.BusUnavailable.exit_code), str(errors.Fenced.exit_code)} & set(stopped.split())


def test_drop_ins_use_our_variables() -> None:
    from our_commands import VARIABLES

    text = "".join(path.read_text() for path in SYSTEMD.iterdir())
    assert set(re.findall(r"\bCGZSL_\w+", text)) <= VARIABLES
