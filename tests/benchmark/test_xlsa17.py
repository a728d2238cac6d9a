"""The benchmarks' layout: what is read, and which errors wrong files cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from small_data import FEATURES, SPLITS, cells, known_folder, matlab_folder

from stream_cgzsl.benchmark.datasets import Dataset, data_folder, load
from stream_cgzsl.benchmark.datasets.known import KNOWN, canonical
from stream_cgzsl.errors import UsageError


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    return matlab_folder(tmp_path / "birds")


@pytest.fixture
def data(birds: Path) -> Dataset:
    return load(birds)


def refused(folder: Path, **named: str) -> str:
    with pytest.raises(UsageError) as caught:
        load(folder, **named)
    return str(caught.value).replace(str(folder), "DIR")


# ---- what is read


def test_classes_are_named_and_described(data: Dataset) -> None:
    assert (data.class_ids, data.seen_pool, data.unseen_pool) == (("owl", "jay", "auk"), ("owl", "jay"), ("auk",))
    assert data.vector("jay").tolist() == [1.0, 4.0, 7.0, 10.0]


def test_rows_go_where_the_splits_say(data: Dataset) -> None:
    assert data.training("owl").tolist() == [[1, -1], [2, -2]]
    assert data.test("owl").tolist() == [[3, -3]]
    assert data.test("auk").tolist() == [[7, -7], [8, -8], [9, -9]]


def test_the_first_row_does_not_wrap_around(data: Dataset) -> None:
    assert data.train.tolist() == [0, 1, 3]


def test_the_data_knows_its_name_and_what_made_its_features(data: Dataset) -> None:
    assert (data.name, data.extractor) == ("birds", "res101")


def test_the_only_file_of_features_needs_no_name(birds: Path) -> None:
    (birds / "res101.mat").rename(birds / "efflite2.mat")
    assert load(birds).extractor == "efflite2"


def test_of_several_files_of_features_one_is_chosen(birds: Path) -> None:
    savemat(birds / "clip.mat", {**FEATURES, "features": np.ones((5, 9))})
    assert load(birds).features.shape == (9, 2)  # res101 comes first
    assert load(birds, "clip").features.shape == load(birds, "clip.mat").features.shape == (9, 5)
    (birds / "res101.mat").rename(birds / "vit.mat")
    assert refused(birds) == "DIR: there are several files of features: choose one with --features clip|vit"


def test_other_class_vectors_are_chosen_by_name(birds: Path) -> None:
    savemat(birds / "sent_splits.mat", {**SPLITS, "att": np.ones((7, 3))})
    assert load(birds, splits="sent_splits").attributes.shape == (3, 7)


# ---- what is refused


@pytest.mark.parametrize(
    ("features", "splits", "said"),
    [
        (
            {"features": None},
            {},
            "DIR/res101.mat: features: found no such variable; expected a file with features, labels",
        ),
        ({"labels": None}, {}, "DIR/res101.mat: labels: found no such variable; expected a file with features, labels"),
        ({"features": np.ones((2, 3, 4))}, {}, "DIR/res101.mat: features: found an array of shape 2 x 3 x 4; expected"),
        (
            {"features": np.ones((2, 0))},
            {},
            "DIR/res101.mat: features: found an array of shape 2 x 0; expected numbers",
        ),
        ({"features": np.full((2, 9), np.nan)}, {}, "DIR/res101.mat: features: found nan at [0, 0] (and 17 more"),
        ({"features": np.full((2, 9), 1e39)}, {}, "DIR/res101.mat: features: found 1e+39 at [0, 0]"),
        ({"features": cells("a", "b")}, {}, "DIR/res101.mat: features: found values of type object; expected numbers"),
        ({"features": np.ones((2, 8))}, {}, "DIR/res101.mat: labels: found 9 labels; expected 8, one per column of"),
        ({"labels": [[0] * 9]}, {}, "DIR/res101.mat: labels: found 0 (9 out of range); expected 1 to 3, the number of"),
        ({"labels": [[4] * 9]}, {}, "DIR/res101.mat: labels: found 4 (9 out of range); expected 1 to 3, the number of"),
        ({"labels": [[np.nan] * 9]}, {}, "DIR/res101.mat: labels: found numbers that are not whole; expected whole"),
        ({"labels": [[1.5] * 9]}, {}, "DIR/res101.mat: labels: found numbers that are not whole; expected whole"),
        ({"labels": np.ones((3, 3))}, {}, "DIR/res101.mat: labels: found float64 of shape 3 x 3; expected one row or"),
        (
            {},
            {"att": None},
            "DIR/att_splits.mat: att: found no such variable; expected a file with att, allclasses_names",
        ),
        ({}, {"att": np.full((4, 3), np.inf)}, "DIR/att_splits.mat: att: found inf at [0, 0] (and 11 more"),
        (
            {},
            {"att": np.ones((4, 5))},
            "DIR/att_splits.mat: allclasses_names: found 3 names; expected 5, one per column",
        ),
        (
            {},
            {"allclasses_names": cells("owl", "owl", "auk")},
            "DIR/att_splits.mat: allclasses_names: found the class 'owl'",
        ),
        (
            {},
            {"allclasses_names": cells("owl", "", "auk")},
            "DIR/att_splits.mat: allclasses_names: found '' as the name of",
        ),
        ({}, {"trainval_loc": None}, "DIR/att_splits.mat: trainval_loc: found no such variable"),
        ({}, {"trainval_loc": []}, "DIR/att_splits.mat: trainval_loc: found no rows; expected the training rows"),
        (
            {},
            {"trainval_loc": [[0]]},
            "DIR/att_splits.mat: trainval_loc: found 0 (1 out of range); expected 1 to 9, the",
        ),
        ({}, {"trainval_loc": [[1, 1]]}, "DIR/att_splits.mat: trainval_loc: found 1 rows twice; expected every row"),
        ({}, {"trainval_loc": [[1, 3, 4]]}, "DIR/att_splits.mat: trainval_loc: found row 3, which is also a test row"),
        (
            {},
            {"test_unseen_loc": [[10]]},
            "DIR/att_splits.mat: test_unseen_loc: found 10 (1 out of range); expected 1 to 9",
        ),
        ({}, {"test_unseen_loc": [[5]]}, "DIR/att_splits.mat: test_unseen_loc: found rows of 'jay', which has"),
        ({}, {"test_seen_loc": [[9]]}, "DIR/att_splits.mat: test_seen_loc: found rows of 'auk', which has no training"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(
    tmp_path: Path, features: dict[str, Any], splits: dict[str, Any], said: str
) -> None:
    assert refused(matlab_folder(tmp_path / "birds", features, splits))[: len(said)] == said


def test_fewer_rows_than_the_splits_name_are_noticed(tmp_path: Path) -> None:
    """A truncated file of features: it is consistent in itself, but not with the splits."""
    short = {"features": np.ones((2, 6)), "labels": [[1, 1, 1, 2, 2, 2]]}
    assert refused(matlab_folder(tmp_path / "birds", short)) == (
        "DIR/att_splits.mat: test_unseen_loc: found 7 (3 out of range); expected 1 to 6, the rows of res101.mat"
    )


def test_a_missing_file_is_named(birds: Path) -> None:
    assert refused(birds, features="efflite2").startswith("there is no DIR/efflite2.mat; say where")
    assert refused(birds, splits="sent_splits").startswith("there is no DIR/sent_splits.mat; say where")


@pytest.mark.parametrize("content", [b"", b"features, labels\n1, 2\n" * 50, b"\x89PNG" + bytes(500)])
def test_a_file_that_is_not_matlab_is_reported(birds: Path, content: bytes) -> None:
    (birds / "res101.mat").write_bytes(content)
    assert refused(birds).startswith("DIR/res101.mat: not a MATLAB file, or a damaged one: ")


def test_half_a_matlab_file_is_named(birds: Path) -> None:
    savemat(birds / "res101.mat", {**FEATURES, "features": np.random.default_rng(0).normal(size=(400, 9))})
    whole = (birds / "res101.mat").read_bytes()
    (birds / "res101.mat").write_bytes(whole[: len(whole) // 2])
    assert refused(birds).startswith("DIR/res101.mat: not a MATLAB file, or a damaged one: ")


def test_a_newer_matlab_format_is_refused_with_advice(birds: Path) -> None:
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    (birds / "res101.mat").write_bytes(header + bytes(1000))
    assert refused(birds) == "DIR/res101.mat: this is a MATLAB file of version 7.3; save it as version 7 (save -v7)"


# ---- the five benchmarks


@pytest.mark.parametrize("name", ["AWA1", "AWA2", "APY", "aPY", "CUB", "SUN"])
def test_a_benchmark_may_have_other_features_and_fewer_images(tmp_path: Path, name: str) -> None:
    data = load(known_folder(tmp_path, name))
    assert (data.name, len(data.seen_pool), len(data.unseen_pool)) == (
        "aPY" if name == "APY" else name,
        KNOWN[data.name].seen,
        KNOWN[data.name].unseen,
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"classes": 199}, "att: found 199 classes; expected 200, as in CUB"),
        ({"attributes": 311}, "att: found 311 attributes per class; expected 312, as in CUB"),
        ({"seen": 149}, "trainval_loc: found rows of 149 classes; expected 150, as in CUB"),
    ],
)
def test_a_folder_called_cub_with_other_data_is_refused(tmp_path: Path, changed: dict[str, int], said: str) -> None:
    error = refused(known_folder(tmp_path, "CUB", **changed))
    assert error == f"DIR/att_splits.mat: {said}; rename the folder if it holds other data"


def test_other_class_vectors_of_a_benchmark_may_have_any_length(tmp_path: Path) -> None:
    folder = known_folder(tmp_path, "CUB", attributes=1024)
    (folder / "att_splits.mat").rename(folder / "sent_splits.mat")
    assert load(folder, splits="sent_splits").attributes.shape == (200, 1024)


@pytest.mark.parametrize("folder", ["AWA1", "AWA2", "APY", "CUB", "SUN"])
def test_the_published_splits_have_the_sizes_we_know(folder: str) -> None:
    path = data_folder() / folder / "att_splits.mat"
    if not path.is_file():
        pytest.skip(f"{path} is not there; CGZSL_DATA can name another folder")
    split, known = loadmat(path), KNOWN[canonical(folder)]
    rows = np.concatenate([split[f].ravel().astype(int) for f in ("trainval_loc", "test_seen_loc", "test_unseen_loc")])
    assert split["att"].shape == (known.attributes, known.classes)
    assert sorted(rows) == list(range(1, known.images + 1))
    assert known.seen + known.unseen == known.classes


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("CUB", (150, 50, 312, 1280, 7057, 1764, 2967)), ("BANKING77", (60, 17, 384, 384, 7863, 2400, 680))],
)
def test_real_data_is_read(name: str, sizes: tuple[int, ...]) -> None:
    if not list((data_folder() / name).glob("[em]*.mat")):
        pytest.skip(f"the features of {name} are not in {data_folder()}; CGZSL_DATA can name another folder")
    data = load(name)
    counts = (data.train, data.test_seen, data.test_unseen)
    shapes = (data.attributes.shape[1], data.features.shape[1])
    assert (len(data.seen_pool), len(data.unseen_pool), *shapes, *map(len, counts)) == sizes
    assert data.signed == (name == "BANKING77")
