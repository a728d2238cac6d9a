from __future__ import annotations

import numpy as np
import pytest

from stream_cgzsl.benchmark.datasets import data_folder, load
from stream_cgzsl.benchmark.protocol import ONLINE, windows
from stream_cgzsl.benchmark.scores import Accuracy, Scores, accuracy, narrowed, run
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners import create


def generation(class_ids: str, seen: str) -> Generation:
    """Class `a` answers to the first direction, `b` to the second, and so on."""
    vectors = np.eye(4, dtype=np.float32)[["abcd".index(c) for c in class_ids]]
    flags = np.array([c in seen for c in class_ids])
    return Generation(1, tuple(class_ids), flags, vectors, np.zeros(len(class_ids)), np.zeros(4))


def rows(*directions: int) -> np.ndarray:
    return np.eye(4, dtype=np.float32)[list(directions)]


TESTS = {"a": rows(0, 0, 0, 1), "b": rows(1), "c": rows(2, 3), "d": rows(0, 0)}


def test_every_class_counts_the_same_whatever_its_rows() -> None:
    found = accuracy(generation("abcd", "ab"), generation("abcd", "ab"), TESTS)
    assert found == Accuracy(seen=87.5, unseen=25.0)
    assert found.harmonic == pytest.approx(2 * 87.5 * 25 / 112.5)


def test_an_earlier_window_is_judged_in_its_own_label_space() -> None:
    early, final = generation("ac", "a"), generation("abcd", "abc")
    assert narrowed(final, early).class_ids == ("a", "c")
    # without b and d around, the rows that leaned to them fall back to the first of the equal ones
    assert accuracy(narrowed(final, early), early, TESTS) == Accuracy(seen=100.0, unseen=50.0)


def test_without_unseen_classes_the_harmonic_mean_is_nothing() -> None:
    assert accuracy(generation("ab", "ab"), generation("ab", "ab"), TESTS).harmonic == 0.0


def test_mh_is_the_mean_of_harmonic_means() -> None:
    scores = Scores((Accuracy(50, 50), Accuracy(100, 0)))
    assert (scores.mSA, scores.mUA, scores.mH) == (75.0, 25.0, 25.0)


@pytest.mark.skipif(
    not (data_folder() / "BANKING77" / "minilm.mat").is_file(),
    reason="BANKING77 is not in CGZSL_DATA or ../shared/data",
)
def test_episodic_on_real_data() -> None:
    data = load(data_folder() / "BANKING77", "minilm")
    found = run(create("episodic", data.space()), data, windows(data, ONLINE["BANKING77"]))
    assert [int(g.seen.sum()) for g in found.generations] == [9, 19, 29, 39, 49, 59]
    assert all(g.calibration["shared"] for g in found.generations)
    assert found.as_of.mH > 87
