"""A run: the same figures as without a stream, and the same digests on both buses and after any interruption."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from helpers import GENESIS, Producer, learner, new_bus, recorded, settings_for, sqlite_url
from small_runs import DATA, TASKS, Watcher, asked, digests, done

from stream_cgzsl.benchmark import scores
from stream_cgzsl.benchmark.runs.folder import RunFolder
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.runs.run import run
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import TooManyDeadLetters, UsageError
from stream_cgzsl.evaluation import published
from stream_cgzsl.history.replay import Verdict, verify
from stream_cgzsl.learners import create
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.report.page import render
from stream_cgzsl.schemas import Message
from stream_cgzsl.windows.ledger import read_all

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    done(path)
    return RunFolder(path)


@pytest.fixture(scope="module")
def document(folder: RunFolder) -> RunDocument:
    return folder.document()


# ---- results


def test_a_run_has_the_same_figures_as_the_library_without_a_stream(tmp_path: Path) -> None:
    request = asked(learner="episodic")  # its result does not depend on the order of rows
    offline = scores.run(create("episodic", request.data.space()), request.data, request.plan)
    folder = RunFolder(tmp_path / "run")
    done(folder.path, request)
    metrics = json.loads(folder.metrics.read_text())
    for name in ("as_of", "recalculated"):
        reading: scores.Scores = getattr(offline, name)
        assert metrics[name]["SA"] == pytest.approx([accuracy.seen for accuracy in reading.windows])
        assert metrics[name]["UA"] == pytest.approx([accuracy.unseen for accuracy in reading.windows])
        assert metrics[name]["mH"] == pytest.approx(reading.mH)
    assert metrics["forgetting"] == pytest.approx(offline.readings.final_forgetting)
    assert metrics["mAUSUC"] == pytest.approx(offline.readings.mAUSUC)
    assert (metrics["method"], metrics["setting"], metrics["dataset"]) == ("episodic", "online", request.data.name)
    assert (metrics["generations"], 0 < metrics["seconds_training"] < metrics["seconds_total"]) == (TASKS, True)


def test_the_document_agrees_with_the_bus(folder: RunFolder, document: RunDocument) -> None:
    with connect(folder.own_bus) as bus:
        records = read_all(bus, Topics())[1:]
        evaluations = list(published.read_all(bus, Topics()))
    assert digests(document) == [record.generation for record in records]
    assert [(line.number, line.seen, line.unseen) for line in document.windows] == [
        (record.number, record.seen, record.unseen) for record in records
    ]
    for name, field in (("seen_accuracy", "seen"), ("forgetting", "forgetting"), ("area", "area")):
        shares = [getattr(evaluation, field) for evaluation in evaluations]
        assert [getattr(line, name) for line in document.windows] == [
            None if share is None else 100 * share for share in shares
        ]
    assert [line.described for line in document.windows] == [4] * TASKS
    assert [line.features for line in document.windows] == [24, 36, 36, 36]
    assert document.environment == records[-1].environment


def test_the_page_is_that_of_the_document(folder: RunFolder, document: RunDocument) -> None:
    assert folder.report_html.read_text() == render(document)


def test_the_command_reproduces_the_run(folder: RunFolder, document: RunDocument) -> None:
    assert document.command == (
        f"stream-cgzsl run {DATA} --setting online --out {folder.path} --tasks {TASKS} --learner closed-form"
    )


def test_the_curve_passes_through_the_learned_offset(document: RunDocument) -> None:
    last = document.windows[-1]
    assert document.curve_point is not None
    point = document.curve_point.seen, document.curve_point.unseen
    assert point == pytest.approx((last.seen_accuracy, last.unseen_accuracy), abs=1e-3)
    assert (document.curve[0].unseen, document.curve[-1].seen) == (0.0, 0.0)


def test_three_classes_are_followed_one_of_which_is_learned_later(document: RunDocument) -> None:
    assert [panel.learned_in for panel in document.similarities] == [None, None, 2]
    windows = [[look.window for look in panel.windows] for panel in document.similarities]
    assert windows == [[1, 2, 3, 4], [2, 3, 4], [1, 2, 3, 4]]  # each since it was described
    for panel in document.similarities:
        for look in panel.windows:
            similarities = [similar.similarity for similar in look.top]
            assert (len(similarities), similarities) == (3, sorted(similarities, reverse=True))


def test_the_map_has_real_and_replayed_features_of_six_classes(document: RunDocument) -> None:
    assert document.map is not None
    counts = [sum(point.replayed is flag for point in document.map.points) for flag in (False, True)]
    assert (len(document.map.class_ids), counts) == (6, [6 * 6, 6 * 30])


def test_losses_and_replay_counts_are_in_the_document(tmp_path: Path) -> None:
    lines = done(tmp_path / "run", asked(learner="adversarial")).windows
    assert [line.replay_kept is not None and line.replay_rejected is not None for line in lines] == [True] * TASKS
    assert all({"rcl", "nuclear"} <= set(line.losses) for line in lines)


@pytest.mark.parametrize("setting", ["static", "dynamic"])
def test_every_setting_can_be_run(tmp_path: Path, setting: str) -> None:
    found = done(tmp_path / "run", asked(setting=setting))
    assert (found.setting, len(found.windows)) == (setting, TASKS)
    last = found.windows[-1]
    assert (last.unseen == 0, last.unseen_accuracy is None) == ((True, True) if setting == "static" else (False, False))


# ---- on both buses


def test_both_buses_give_the_same_digests_and_can_be_verified(
    bus_url: str, tmp_path: Path, document: RunDocument
) -> None:
    prefix = f"run-{uuid.uuid4().hex[:8]}"
    found = done(tmp_path / "run", asked(bus=bus_url, prefix=prefix))
    assert digests(found) == digests(document)
    with connect(bus_url) as bus:
        verdicts = [one.verdict for one in verify(bus, Topics(prefix), recorded(bus, Topics(prefix)), "cpu")]
    assert verdicts == [Verdict.IDENTICAL] * TASKS


# ---- resuming


@pytest.mark.parametrize(
    "moment", ["feeding task 2", "learning task 1", "learned 1", "learned 3", "writing the report"]
)
def test_an_interrupted_run_ends_with_the_same_digests(moment: str, tmp_path: Path, document: RunDocument) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(asked(), RunFolder(path), Watcher(moment))
    assert not RunFolder(path).finished()
    watcher = Watcher()
    found = run(asked(), RunFolder(path), watcher)
    assert watcher.done == [1, 2, 3, 4]
    assert (digests(found), found.as_of, found.recalculated, found.forgetting, found.similarities, found.map) == (
        *(digests(document), document.as_of, document.recalculated),
        *(document.forgetting, document.similarities, document.map),
    )


def test_training_times_of_windows_learned_before_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(asked(), RunFolder(path), Watcher("learned 2"))
    before = RunFolder(path).spent()
    found = done(path)
    assert [line.seconds_training for line in found.windows[:2]] == [before.training[1], before.training[2]]
    assert all(line.seconds_training > 0 for line in found.windows)
    assert found.seconds_total > before.total > 0


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = done(path)
    RunFolder(path).database.unlink()
    watcher = Watcher()
    assert run(asked(), RunFolder(path), watcher) == first
    assert watcher.started == []


def test_an_unfinished_run_can_be_moved(tmp_path: Path, document: RunDocument) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(asked(), RunFolder(tmp_path / "run"), Watcher("learned 2"))
    (tmp_path / "run").rename(tmp_path / "moved")
    assert digests(done(tmp_path / "moved")) == digests(document)


# ---- refusals


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (lambda: asked(setting="dynamic"), "its setting is 'online', and the request says 'dynamic'"),
        (lambda: asked(learner="ridge"), "its learner is 'closed-form', and the request says 'ridge'"),
        (lambda: asked(seed=1), "its seed is 0, and the request says 1"),
        (lambda: asked(order=3), "its order is not set, and the request says 3"),
        (lambda: asked(shared=True), "its shared is not set, and the request says True"),
        (lambda: asked(DATA + ",seed=8"), "its dataset is "),
        (lambda: asked(bus="sqlite:///other.db"), "its bus is not set, and the request says 'sqlite:///other.db'"),
    ],
)
def test_a_folder_with_another_run_is_refused(folder: RunFolder, other: object, difference: str) -> None:
    assert callable(other)
    with pytest.raises(UsageError) as refusal:
        run(other(), folder, Watcher())
    assert str(refusal.value).startswith(f"{folder.path} has another run: {difference}")


def test_a_stream_of_another_run_is_refused(tmp_path: Path, folder: RunFolder) -> None:
    with pytest.raises(UsageError, match=r"'cgzsl' has a ledger of 5 records, and .*/run has no run that wrote it"):
        done(tmp_path / "run", asked(bus=folder.own_bus))
    assert RunFolder(tmp_path / "run").is_new()


def test_a_stream_of_other_sizes_is_refused(tmp_path: Path) -> None:
    wide = DATA.replace("features=16", "features=20")
    with new_bus(sqlite_url(tmp_path)) as bus, learner(settings_for(bus)) as worker:
        while not read_all(bus, Topics("t")):
            worker.alive()
        with pytest.raises(UsageError, match=f"'t'.*features of {GENESIS.features} numbers.*have 20"):
            done(tmp_path / "run", asked(wide, bus=bus.url, prefix="t"))


def test_an_invalid_record_ends_the_run(tmp_path: Path) -> None:
    with new_bus(sqlite_url(tmp_path)) as bus:
        Producer(bus).send("features", Message(b"heron", b"not a vector"))
        with pytest.raises(TooManyDeadLetters, match="1 records of window 1 are invalid"):
            done(tmp_path / "run", asked(bus=bus.url, prefix="t"))


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run").held(), pytest.raises(UsageError, match="another process is using this folder"):
        done(tmp_path / "run")


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (lambda: asked(learner="oracle"), "there is no learner 'oracle'"),
        (lambda: asked(options={"colour": "red"}), "learner 'closed-form' has no option 'colour'"),
        (lambda: asked(learner="joint"), "'joint' keeps every example and cannot be run on a stream"),
    ],
)
def test_what_cannot_be_run_leaves_no_folder(tmp_path: Path, request_: object, line: str) -> None:
    assert callable(request_)
    request: RunRequest = request_()
    with pytest.raises(UsageError, match=line):
        done(tmp_path / "run", request)
    assert not (tmp_path / "run").exists()


def test_a_damaged_request_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"identity": ')
    with pytest.raises(UsageError, match=r"run.json: not the request of a run"):
        done(tmp_path / "run")
