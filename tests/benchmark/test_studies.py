"""Studies: which runs they have, that none is run twice, and what their rows contain."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import Watcher, asked, digests

from stream_cgzsl.benchmark.paper import paper_rows
from stream_cgzsl.benchmark.runs.folder import RunFolder
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.studies import plans as studies
from stream_cgzsl.benchmark.studies.plans import Study
from stream_cgzsl.benchmark.studies.study import run_study
from stream_cgzsl.benchmark.studies.table import study_table
from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners import BASELINES, LEARNERS
from stream_cgzsl.report.document import StudyDocument
from stream_cgzsl.report.page import render

pytestmark = pytest.mark.slow


def ran(path: Path, study: Study, base: RunRequest, seeds: int = 1, watcher: Watcher | None = None) -> StudyDocument:
    return run_study(study, base, seeds, RunFolder(path), "the command", watcher or Watcher())


def changes(study: Study) -> dict[str, dict[str, object]]:
    return {variant.label: dict(variant.request.settings.options) for variant in study.variants}


# ---- which runs a study has


def test_the_ablation_has_the_papers_eight_rows() -> None:
    base = asked(learner="adversarial", options={})
    off = {"replay": {"replay": 0}, **{part: {part: 0.0} for part in ("sal", "nuclear", "rcl", "pcl", "snl")}}
    assert changes(studies.ablation(base)) == {
        "everything": {},
        "w/o replay": off["replay"],
        "w/o L_sal": off["sal"],
        "w/o L_nuclear": off["nuclear"],
        "w/o L_sal and L_nuclear": off["sal"] | off["nuclear"],
        "w/o L_rcl and L_pcl": off["rcl"] | off["pcl"],
        "w/o L_snl": off["snl"],
        "w/o replay, L_rcl and L_pcl": off["replay"] | off["rcl"] | off["pcl"],
    }


def named(base: RunRequest, name: str) -> RunRequest:
    """The same request for a data set with another name."""
    return replace(base, data=replace(base.data, name=name))


def test_the_ablation_has_the_papers_figures_for_its_data_sets() -> None:
    base = asked(learner="adversarial")
    rows = {variant.label: variant.paper for variant in studies.ablation(named(base, "CUB")).variants}
    assert {label: paper and paper.mH for label, paper in rows.items()} == {
        "everything": 48.03,
        "w/o replay": 2.21,
        "w/o L_sal": 40.1,
        "w/o L_nuclear": 39.53,
        "w/o L_sal and L_nuclear": 19.88,
        "w/o L_rcl and L_pcl": 10.72,
        "w/o L_snl": 40.92,
        "w/o replay, L_rcl and L_pcl": 0.58,
    }
    assert {variant.paper for variant in studies.ablation(base).variants} == {None}


def test_a_sweep_replays_as_many_as_it_says() -> None:
    study = studies.replay(asked(learner="adversarial", options={"hidden": 8}), (0, 20))
    assert changes(study) == {
        "0 per class": {"hidden": 8, "replay": 0, "replay_even": False},
        "20 per class": {"hidden": 8, "replay": 20, "replay_even": False},
    }
    assert [variant.x for variant in study.variants] == [0, 20]
    printed = changes(studies.replay(asked(learner="paper"), (20,)))
    assert printed == {"20 per class": {"replay": 20}}  # nothing else bounds it there


@pytest.mark.parametrize("make", [studies.ablation, studies.replay])
def test_studies_of_parts_are_for_learners_that_have_them(make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=r"learner 'ridge' has no option .* paper, authors-code and adversarial"):
        make(asked(learner="ridge"))


def test_each_setting_has_its_plan_and_the_papers_figures() -> None:
    study = studies.settings(named(replace(asked(), sizes={"tasks": 2, "seen": 3}), "AWA2"))
    assert [variant.request.plan.setting for variant in study.variants] == ["static", "dynamic", "online"]
    printed = [paper_rows("AWA2", variant.label)[-1].figures for variant in study.variants]
    assert [variant.paper for variant in study.variants] == printed


def test_every_learner_is_run_with_its_defaults() -> None:
    study = studies.learners(asked())
    assert [variant.request.settings.learner for variant in study.variants] == [
        name for name in LEARNERS if name not in BASELINES
    ]
    assert [variant.label for variant in study.variants if variant.offline] == ["joint (upper bound, no stream)"]


# ---- running them


def test_seeds_are_rows_with_their_mean_and_deviation(tmp_path: Path) -> None:
    base = asked(learner="adversarial", seed=5)
    found = ran(tmp_path / "study", studies.seeds(base), base, 3)
    one, two, three, all_ = found.rows
    assert [row.label for row in found.rows] == ["seed 5", "seed 6", "seed 7", "all seeds"]
    assert [row.runs for row in found.rows] == [1, 1, 1, 3]
    values = [row.as_of.mSA or 0.0 for row in (one, two, three)]
    assert all_.deviation is not None
    assert (all_.as_of.mSA, all_.deviation.mSA) == pytest.approx((statistics.fmean(values), statistics.stdev(values)))
    assert (one.deviation, all_.digest) == (None, None)
    runs = [RunFolder(tmp_path / "study" / f"all-seeds-seed-{seed}").document() for seed in (5, 6, 7)]
    assert [row.digest for row in (one, two, three)] == [digests(run)[-1] for run in runs]


def test_a_study_writes_its_document_and_its_page(tmp_path: Path) -> None:
    base = asked()
    found = ran(tmp_path / "study", studies.settings(base), base)
    folder = RunFolder(tmp_path / "study")
    assert folder.run_or_study() == found
    assert folder.report_html.read_text() == render(found)
    assert (found.setting, found.command, found.dataset) == ("static, dynamic, online", "the command", base.data.name)


def test_an_upper_bound_is_run_without_a_stream(tmp_path: Path) -> None:
    base = asked(learner="joint")
    study = Study("learners", "title", "question", "online", studies.learners(asked()).variants[-1:])
    (row,) = ran(tmp_path / "study", study, base).rows
    folder = RunFolder(tmp_path / "study" / "joint-upper-bound-no-stream-seed-0")
    assert row.label == "joint (upper bound, no stream)"
    assert (folder.document().bus, folder.database.exists()) == ("none: the library alone", False)
    assert folder.metrics.exists()


def test_an_interrupted_study_resumes_and_runs_nothing_twice(tmp_path: Path) -> None:
    base = asked(learner="adversarial")
    study = studies.replay(base, (0, 5, 10))

    class Impatient(Watcher):
        def run_started(self, request: RunRequest, learned: int) -> None:
            super().run_started(request, learned)
            if len(self.started) == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path / "study", study, base, watcher=Impatient())
    assert not RunFolder(tmp_path / "study").study_json.exists()
    watcher = Watcher()
    found = ran(tmp_path / "study", study, base, watcher=watcher)
    assert (len(watcher.started), [row.x for row in found.rows]) == (1, [0, 5, 10])
    again = Watcher()
    assert ran(tmp_path / "study", study, base, watcher=again) == found
    assert again.started == []
    more = Watcher()
    longer = ran(tmp_path / "study", studies.replay(base, (0, 5, 10, 12)), base, watcher=more)
    assert (len(more.started), longer.rows[:3]) == (1, found.rows)


def test_a_folder_with_another_study_is_refused(tmp_path: Path) -> None:
    base = asked()
    path = tmp_path / "study"
    ran(path, Study("seeds", "title", "question", "online", ()), base)
    with pytest.raises(UsageError, match="has another run: its study is 'seeds', and the request says 'settings'"):
        ran(path, studies.settings(base), base)
    with pytest.raises(UsageError, match="its seed is 0, and the request says 4"):
        ran(path, Study("seeds", "title", "question", "online", ()), asked(seed=4))


@pytest.fixture(scope="module")
def two_seeds(tmp_path_factory: pytest.TempPathFactory) -> StudyDocument:
    """A study of two runs that share a bus."""
    folder = tmp_path_factory.mktemp("seeds")
    base = asked(bus=f"sqlite:///{folder}/bus.db", prefix="p")
    return ran(folder / "study", studies.seeds(base), base, 2)


def test_runs_that_share_a_bus_have_different_prefixes(two_seeds: StudyDocument) -> None:
    prefixes = [row.settings["prefix"] for row in two_seeds.rows]
    assert prefixes == ["p-all-seeds-seed-0", "p-all-seeds-seed-1", "p-all-seeds-seed-0"]


# ---- the table


def test_the_table_shows_only_columns_with_figures(two_seeds: StudyDocument) -> None:
    headers = [str(column.header) for column in study_table(two_seeds).columns]
    assert headers == ["row", "runs", "as of\nmSA", "mUA", "mH", "±", "recalc.\nmH", "forgot", "area", "trained"]
    assert [str(column.header) for column in study_table(two_seeds.model_copy(update={"rows": ()})).columns] == ["row"]
