"""The command `study`: one table, one JSON document, one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stream_cgzsl.cli import main
from stream_cgzsl.runtime.settings import Settings

pytestmark = pytest.mark.slow

DATA = "synthetic:classes=12,unseen=4,attributes=8,features=16,rows=10,test=5"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CGZSL_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], dict[str, object]]:
    """What a study prints, and its document."""
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
    ("given", "learner"), [((), "paper"), (("--learner", "authors-code"), "authors-code")], ids=["default", "given"]
)
def test_a_sweep_is_of_the_learner_with_replay(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], learner: str
) -> None:
    quick = ("--options", "epochs=1", "--options", "hidden=8")
    lines, document = ran(capsys, "replay", DATA, *given, *quick, "--counts", "0,3")
    rows = document["rows"]
    assert isinstance(rows, list)
    assert [(row["x"], row["settings"]["learner"]) for row in rows] == [(0.0, learner), (3.0, learner)]
    assert sum(line.startswith(f"{document['dataset']}, online: {learner}, ") for line in lines) == 2


def test_few_shot_is_one_table_one_document_and_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["study", "few-shot", DATA, "--learners", "ridge,closed-form", "--draws", "1", "--shots", "0,2"]
    assert main([*command, "--seed", "3", "--no-shared", "--out", "many"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["ridge: learning the seen classes", "ridge: 1 of 1 draws"]
    assert [line.split()[0] for line in lines if "learned before" in line] == ["ridge", "closed-form"]
    document = json.loads(Path("many/study.json").read_text())
    assert [[shot["k"] for shot in curve["shots"]] for curve in document["curves"]] == [[0, 2], [0, 2]]
    assert document["command"] == (
        f"stream-cgzsl study few-shot {DATA} --out many --seed 3 --no-shared --learners ridge,closed-form --draws 1 "
        "--shots 0,2"
    )
    page = Path("many/report.html").read_text()
    assert main(["report", "many"]) == 0
    assert Path("many/report.html").read_text() == page


def test_a_study_in_the_trickle_setting_compares_overall_accuracy(capsys: pytest.CaptureFixture[str]) -> None:
    lines, document = ran(capsys, "seeds", DATA, "--setting", "trickle", "--learner", "ridge", "--seeds", "2")
    assert any("overall" in line.split() for line in lines)
    rows = document["rows"]
    assert isinstance(rows, list)
    assert rows[2]["overall"] == pytest.approx((rows[0]["overall"] + rows[1]["overall"]) / 2)
    assert set(rows[2]["by_examples"]) >= {"0", "1-2"}
    assert '<section id="examples"' in Path("many/report.html").read_text()
