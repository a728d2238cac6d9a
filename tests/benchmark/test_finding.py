"""Finding the folder of a data set, and the data set in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_data import data, matlab_folder

from stream_cgzsl.benchmark.datasets import data_folder, load, split_rows
from stream_cgzsl.errors import UsageError


def test_the_folder_of_data_sets_can_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CGZSL_DATA", str(tmp_path / "from-environment"))
    assert data_folder(tmp_path / "given") == tmp_path / "given"
    assert data_folder() == tmp_path / "from-environment"


def test_a_data_set_is_found_by_path_and_by_name_in_any_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = matlab_folder(tmp_path / "Birds")
    monkeypatch.setenv("CGZSL_DATA", str(tmp_path))
    monkeypatch.chdir(folder)
    found = {load(named).name for named in (folder, str(folder), "birds", "Birds", ".")}
    assert found == {"Birds"}


def test_an_unknown_data_set_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load("unicorns", under=tmp_path)
    assert str(caught.value) == (
        f"there is no data set 'unicorns': no folder has that path, and none in {tmp_path} has that name; say where "
        "data sets are with --data or CGZSL_DATA"
    )


def test_a_choice_of_files_is_refused_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "features.csv").write_text("label,a\nowl,1\n")
    with pytest.raises(UsageError, match="--features and --splits are for folders of MATLAB files"):
        load(tmp_path, features="res101")


# ---- the value


def test_the_space_knows_signs_and_sizes(tmp_path: Path) -> None:
    space = load(matlab_folder(tmp_path / "birds")).space(seed=7, shared=False)
    assert (space.attributes, space.features, space.signed, space.shared, space.seed) == (4, 2, True, False, 7)


@pytest.mark.parametrize(
    ("count", "testing"),
    [(0, []), (1, []), (2, [1]), (4, [3]), (5, [4]), (9, [4]), (10, [4, 9]), (61, [*range(4, 61, 5)])],
)
def test_every_fifth_row_of_a_class_is_for_testing(count: int, testing: list[int]) -> None:
    train, test = split_rows(np.arange(count))
    assert (sorted([*train, *test]), test.tolist()) == (list(range(count)), testing)


def test_in_the_static_setting_every_class_can_be_learned() -> None:
    before = data(seen=2, unseen=2)
    after = before.under("static")
    assert (after.seen_pool, after.unseen_pool) == (before.class_ids, ())
    assert after.train.tolist() == [0, 1, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]
    assert after.test_seen.tolist() == [2, 5, 10, 15]
    assert after.under("static") is after


@pytest.mark.parametrize("setting", ["dynamic", "online"])
def test_in_the_other_settings_nothing_moves(setting: str) -> None:
    before = data(2, 2)
    assert before.under(setting) is before


def test_different_data_has_different_digests() -> None:
    assert data(3, 1).digest == data(3, 1, name="OTHER").digest
    assert len({data(3, 1).digest, data(3, 2).digest, data(3, 2).under("static").digest}) == 3
