"""The command line: help for every command, and one line and an exit code for every error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import CLASSES, TOPICS, Producer, new_bus, read, sqlite_url
from patience import PATIENCE_SECONDS

import stream_cgzsl
import stream_cgzsl.schemas
from stream_cgzsl.bus import TopicSpec, connect
from stream_cgzsl.cli import COMMANDS, main
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import ROLES, Boundary, decode


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Variables and settings files of the machine that runs the tests have no effect."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CGZSL_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A file with the topics of stream t."""
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        return bus.url


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and the one line on standard error of a command that fails."""
    code = main(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("stream-cgzsl: "), err
    return code, lines[0].removeprefix("stream-cgzsl: ")


def prints(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines that a successful command prints."""
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


# ---- help


def test_every_command_is_in_the_help_with_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert [c for c in COMMANDS if c.replace("_", "-") not in out] == []
    assert "exit codes: 0 done" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command.replace("_", "-"), "--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert out.startswith(f"usage: stream-cgzsl {command.replace('_', '-')}")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["topics"],
        ["topics", "delete"],
        ["learn", "--log-level", "loud"],
        ["topics", "create", "--partitions", "0"],
        ["demo", "--partitions", "-1"],
        ["boundary", "--reason", ""],
        ["boundary", "--reason", "two\nlines"],
        ["rollback"],
        ["rollback", "0"],
        ["dead-letters", "show", "--last", "-1"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_explained_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert (err.startswith("stream-cgzsl"), err.count("\n")) == (True, 1), err


def test_the_installed_command_prints_its_version() -> None:
    script = Path(sys.executable).with_name("stream-cgzsl")
    printed = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed == f"stream-cgzsl {stream_cgzsl.__version__}\n"


# ---- errors are one line and an exit code


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (
            ["topics", "show", "--bus", "redis://here"],
            2,
            "unknown kind of bus 'redis': use sqlite:///path.db or kafka:",
        ),
        (["topics", "show", "--bus", "sqlite://"], 2, "'sqlite://' names no file"),
        (["topics", "show", "--bus", "sqlite:///x.db?mode=fast"], 2, "'sqlite:///x.db?mode=fast': the options are"),
        (["topics", "show", "--bus", "sqlite:///none/x.db"], 3, "sqlite:///none/x.db: the folder none does not exist"),
        (["topics", "create", "--bus", "sqlite:////proc/x.db"], 4, "sqlite:////proc/x.db: "),
        (["topics", "show", "--settings", "none.toml"], 2, "none.toml: there is no such settings file"),
        (["topics", "show", "--topics", "animals=x"], 2, "no such topic role: animals; the roles are attributes, "),
        (["topics", "show", "--topics", "features"], 2, "--topics: 'features' is not of the form name=value"),
        (["learn", "--learner", "joint"], 2, "'joint' keeps every example and is for benchmarks only"),
        (["learn", "--learner", "a-gem"], 2, "'a-gem' keeps a few examples of each class in its state, on the bus"),
        (["boundary"], 5, "sqlite:///cgzsl.db: topic 'cgzsl.control' (task boundaries and rollbacks) is missing"),
        (["check"], 5, "sqlite:///cgzsl.db: topic 'cgzsl.attributes'"),
        (["rollback", "1"], 5, "sqlite:///cgzsl.db: topic 'cgzsl.control'"),
        (["dead-letters", "show"], 5, "sqlite:///cgzsl.db: topic 'cgzsl.dead-letters'"),
        (["schemas", "export", "/proc/schemas"], 2, "cannot write schemas to /proc/schemas: "),
        (["demo", "--bus", "redis://here"], 2, "unknown kind of bus 'redis'"),
        (["copy", "redis://a", "sqlite:///b.db"], 2, "unknown kind of bus 'redis'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, line: str) -> None:
    found, error = fails(capsys, *arguments)
    assert (found, error.startswith(line)) == (code, True), error


def test_a_file_that_is_not_a_bus_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are notes, not a database " * 100)
    code, line = fails(capsys, "topics", "create", "--bus", "sqlite:///notes.txt")
    assert (code, "is this the right file" in line) == (4, True)
    assert (tmp_path / "notes.txt").read_text().startswith("these are notes")


def test_an_unexpected_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(url: str) -> None:
        raise KeyError(url)

    monkeypatch.setattr("stream_cgzsl.cli.flags.connect", broken)
    with pytest.raises(KeyError):
        main(["boundary"])


def test_an_interrupted_command_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(url: str) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    monkeypatch.setattr("stream_cgzsl.cli.flags.connect", interrupted)
    assert fails(capsys, "boundary") == (130, "interrupted")


# ---- settings reach commands


def test_flags_win_over_variables_and_those_over_the_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str
) -> None:
    (tmp_path / "s.toml").write_text(f'bus = "{url}"\nprefix = "file"\n')
    command = ("topics", "show", "--settings", "s.toml")
    main(command)
    monkeypatch.setenv("CGZSL_PREFIX", "variable")
    main(command)
    main((*command, "--prefix", "flag"))
    prefixes = [line.split(".")[0] for line in capsys.readouterr().out.splitlines()[:: len(ROLES)]]
    assert prefixes == ["file", "variable", "flag"]


# ---- topics


def test_topics_are_created_once_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    well = f"sqlite:///cgzsl.db: all {len(ROLES)} topics of 'cgzsl' exist and are configured as they must be"
    names = ", ".join(f"cgzsl.{role}" for role in ROLES)
    assert prints(capsys, "topics", "create", "--partitions", "3") == [f"sqlite:///cgzsl.db: created {names}", well]
    assert prints(capsys, "topics", "create") == ["sqlite:///cgzsl.db: created nothing, all topics exist", well]
    assert prints(capsys, "topics", "check") == [well]
    with connect("sqlite:///cgzsl.db") as bus:
        counts = {name: spec.partitions for name, spec in bus.topics().items()}
    assert counts == {f"cgzsl.{role.name}": 1 if role.single else 3 for role in ROLES.values()}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--replication", "3"), "only a Kafka cluster keeps copies"),
        (("--replication", "2", "--min-insync", "3", "--bus", "kafka://a:1"), "--min-insync 3 is more than"),
    ],
)
def test_copies_that_cannot_be_kept_are_refused(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], message: str
) -> None:
    code, line = fails(capsys, "topics", "create", *flags)
    assert (code, message in line) == (2, True)


def test_topics_can_be_renamed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["topics", "create", "--topics", "features=my.vectors", "--topics", "samples=asks"])
    capsys.readouterr()
    with connect("sqlite:///cgzsl.db") as bus:
        assert {"my.vectors", "asks"} <= set(bus.topics())
        assert "cgzsl.features" not in bus.topics()


def test_problems_of_topics_are_reported_with_advice(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path}/cgzsl.db") as bus:
        specs = {spec.name: spec for spec in TOPICS.specs()}
        specs["t.windows"] = TopicSpec("t.windows", 2, "keep")
        specs["t.attributes"] = TopicSpec("t.attributes", 1, "compact")
        specs["t.samples"] = TopicSpec("t.samples", 1, "keep")  # kept longer than necessary is fine
        del specs["t.state"]
        bus.create(specs.values())
    assert main(["topics", "check", "--prefix", "t"]) == 5
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "topic 't.attributes' is kept as 'compact' and must be kept as 'keep'" in lines[0]
    assert lines[0].endswith("set cleanup.policy=delete, retention.ms=-1 and retention.bytes=-1")
    assert "topic 't.windows' has 2 partitions and must have one" in lines[1]
    assert lines[2].endswith("create it with: stream-cgzsl topics create --bus sqlite:///cgzsl.db --prefix t")


def test_showing_topics_counts_their_records(capsys: pytest.CaptureFixture[str], url: str) -> None:
    with connect(url) as bus:
        Producer(bus).describe(*CLASSES[:3])
    lines = prints(capsys, "topics", "show", "--bus", url, "--prefix", "t")
    assert len(lines) == len(ROLES)
    assert lines[0].split()[:6] == ["t.attributes", "2", "partitions", "keep", "3", "records"]


def test_showing_a_stream_that_does_not_exist_fails(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["topics", "show", "--bus", url, "--prefix", "nobody"]) == 5
    assert capsys.readouterr().out.splitlines()[0].split() == ["nobody.attributes", "missing"]


# ---- boundary and schemas


def test_a_boundary_is_sent_at_the_ends_of_the_topics(capsys: pytest.CaptureFixture[str], url: str) -> None:
    with connect(url) as bus:
        producer = Producer(bus)
        producer.describe(CLASSES[0])
        ends = {role: bus.end_offsets(TOPICS[role]) for role in ("features", "attributes", "holdout")}
        (line,) = prints(capsys, "boundary", "--bus", url, "--prefix", "t", "--reason", "monday")
        (record,) = read(bus, TOPICS["control"])
    assert line == f"boundary 'monday' sent: features {ends['features']}  attributes {ends['attributes']}  " + (
        f"holdout {ends['holdout']}"
    )
    assert decode("control", record.key, record.value, record.headers) == Boundary(reason="monday", cut=ends)


def test_exported_schemas_are_those_checked_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (line,) = prints(capsys, "schemas", "export", "out/schemas")
    folder = Path(stream_cgzsl.schemas.__file__).parent
    written = {p.relative_to(tmp_path / "out/schemas"): p.read_bytes() for p in (tmp_path / "out").rglob("*.json")}
    there = {p.relative_to(folder): p.read_bytes() for p in (folder / "asyncapi.json", *folder.glob("json/*.json"))}
    assert written == there
    assert line == f"{len(there)} files in out/schemas"


def test_a_worker_that_cannot_start_says_why(url: str) -> None:
    command = [sys.executable, "-m", "stream_cgzsl", "score", "--bus", url, "--prefix", "nobody"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert ended.returncode == 5
    assert ended.stderr.splitlines()[-1] == (
        f"stream-cgzsl: {url}: topic 'nobody.windows' (the ledger: one record per window) is missing; "
        f"create it with: stream-cgzsl topics create --bus {url} --prefix nobody"
    )
