from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from stream_cgzsl.benchmark.datasets import Dataset, data_folder, load
from stream_cgzsl.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three classes, nine rows of two features; row k (from 1) holds [k, -k]; indices stored as the files have them."""
    numbers = np.arange(1, 10)
    names = np.empty((3, 1), dtype=object)
    names[:, 0] = ["owl", "jay", "auk"]
    savemat(
        tmp_path / "res101.mat", {"features": np.stack([numbers, -numbers]), "labels": [[1, 1, 1, 2, 2, 2, 3, 3, 3]]}
    )
    savemat(
        tmp_path / "att_splits.mat",
        {
            "att": np.arange(12.0).reshape(4, 3),
            "allclasses_names": names,
            "trainval_loc": np.array([[1], [2], [4]], np.uint16),
            "test_seen_loc": np.array([[3], [5], [6]], np.uint16),
            "test_unseen_loc": np.array([[7], [8], [9]], np.uint16),
        },
    )
    return tmp_path


@pytest.fixture
def data(folder: Path) -> Dataset:
    return load(folder)


def test_classes_are_named_and_described(data: Dataset) -> None:
    assert (data.class_ids, data.seen_pool, data.unseen_pool) == (("owl", "jay", "auk"), ("owl", "jay"), ("auk",))
    assert data.vector("jay").tolist() == [1.0, 4.0, 7.0, 10.0]


def test_rows_go_where_the_splits_say(data: Dataset) -> None:
    assert data.training("owl").tolist() == [[1, -1], [2, -2]]
    assert data.test("owl").tolist() == [[3, -3]]
    assert data.test("auk").tolist() == [[7, -7], [8, -8], [9, -9]]


def test_the_first_row_does_not_wrap_around(data: Dataset) -> None:
    assert data.train.tolist() == [0, 1, 3]


def test_the_space_knows_signs_and_sizes(data: Dataset) -> None:
    space = data.space(seed=7, shared=False)
    assert (space.attributes, space.features, space.signed, space.shared, space.seed) == (4, 2, True, False, 7)


def test_a_missing_file_is_a_usage_error(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no .*efflite2.mat"):
        load(folder, "efflite2")


def test_the_folder_can_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CGZSL_DATA", str(tmp_path / "from-environment"))
    assert data_folder(tmp_path / "given") == tmp_path / "given"
    assert data_folder() == tmp_path / "from-environment"
