"""What people type for many runs: one table, one JSON, one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stream_cgzsl.cli import main
from stream_cgzsl.settings import Settings

DATA = "synthetic:classes=12,unseen=4,attributes=8,features=16,rows=10,test=5"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CGZSL_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], dict[str, object]]:
    """What a study printed, and its document."""
    assert main(["study", *arguments, "--tasks", "2", "--out", "many"]) == 0
    return capsys.readouterr().out.splitlines(), json.loads(Path("many/study.json").read_text())


def test_a_study_ends_in_one_table_one_document_and_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    lines, document = ran(capsys, "seeds", DATA, "--learner", "closed-form", "--seeds", "2")
    assert [line.split()[:2] for line in lines if line.startswith((" seed", " all"))] == [
        *(["seed", "0"], ["seed", "1"]),
        ["all", "seeds"],
    ]
    assert lines[-1] == "files  many/study.json  many/report.html"
    assert document["command"] == (
        f"stream-cgzsl study seeds {DATA} --setting online --out many --tasks 2 --learner closed-form --seeds 2"
    )
    page = Path("many/report.html").read_text()
    assert main(["report", "many"]) == 0
    assert Path("many/report.html").read_text() == page


@pytest.mark.parametrize(
    ("given", "learner"), [((), "adversarial"), (("--learner", "paper"), "paper")], ids=["unless told", "as told"]
)
def test_a_sweep_is_of_the_learner_with_replay(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], learner: str
) -> None:
    quick = ("--options", "max_iterations=4", "--options", "hidden=8")
    lines, document = ran(capsys, "replay", DATA, *given, *quick, "--counts", "0,3")
    rows = document["rows"]
    assert isinstance(rows, list)
    assert [(row["x"], row["settings"]["learner"]) for row in rows] == [(0.0, learner), (3.0, learner)]
    assert sum(line.startswith(f"{document['dataset']}, online: {learner}, ") for line in lines) == 2
