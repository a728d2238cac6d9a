from __future__ import annotations

import numpy as np
import pytest
from worlds import Array

from stream_cgzsl.learners.calibration.curves import OFFSETS, AccuracyCurves, Prior
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes

SEEN = np.array([True, True, False, False])


def accuracy(scores: Array, truth: Array, offset: float) -> float:
    """Mean over classes of the share of rows that are right when seen classes answer for `offset` less."""
    chosen = (scores - offset * SEEN).argmax(axis=1)
    return float(sum((chosen[truth == c] == c).mean() for c in np.unique(truth)))


@pytest.mark.parametrize("classes", [(0, 1), (2, 3)])
def test_curves_are_the_accuracies_at_each_offset(classes: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    scores = random.uniform(-0.6, 0.6, size=(40, 4))
    truth = np.repeat(classes, [25, 15])
    if classes == (0, 1):
        found = AccuracyCurves.none().with_seen(scores, truth, SEEN)
        curve, others, counts = found.seen, found.unseen, (found.seen_classes, found.unseen_classes)
        assert counts == (2, 0)
    else:
        found = AccuracyCurves.none().with_unseen(scores, truth, SEEN)
        curve, others, counts = found.unseen, found.seen, (found.seen_classes, found.unseen_classes)
        assert counts == (0, 2)
    np.testing.assert_allclose(curve, [accuracy(scores, truth, offset) for offset in OFFSETS])
    assert not others.any()


def test_without_evidence_the_offset_is_the_expected_one() -> None:
    assert AccuracyCurves.none().best_offset() == pytest.approx(0.1, abs=0.003)


def test_the_expected_offset_is_in_the_units_of_the_scores() -> None:
    for expected in (0.01, 0.1, 0.4):
        found = AccuracyCurves.none().best_offset(prior=Prior(expected, expected))
        assert found == pytest.approx(expected, abs=0.005)


def test_the_offset_is_where_the_harmonic_mean_is_highest() -> None:
    # seen rows are right below 0.4, unseen rows above 0.35
    evidence = AccuracyCurves.none()
    for _ in range(200):
        evidence = evidence.with_seen(np.array([[0.5, 0.0, 0.1, 0.0]]), np.array([0]), SEEN)
        evidence = evidence.with_unseen(np.array([[0.5, 0.0, 0.15, 0.0]]), np.array([2]), SEEN)
    assert 0.35 < evidence.best_offset() < 0.4


def test_a_little_evidence_moves_the_offset_a_little() -> None:
    few = AccuracyCurves.none().with_unseen(np.array([[0.5, 0.0, 0.15, 0.0]]), np.array([2]), SEEN)
    assert 0.1 <= few.best_offset() <= 0.36


def test_evidence_fades() -> None:
    once = AccuracyCurves.none().with_seen(np.array([[0.5, 0.0, 0.1, 0.0]]), np.array([0]), SEEN)
    faded = once.faded()
    np.testing.assert_allclose([faded.seen, faded.unseen], [0.95 * once.seen, 0.95 * once.unseen])
    assert (faded.seen_classes, faded.unseen_classes) == (0.95, 0.0)


def test_where_nothing_is_unseen_any_offset_is_right() -> None:
    found = AccuracyCurves.none().with_seen(np.array([[0.5, 0.2]]), np.array([0]), np.array([True, True]))
    assert (found.seen == 1).all()


def test_snapshots_restore_the_curves() -> None:
    evidence = AccuracyCurves.none().with_seen(np.array([[0.5, 0.0, 0.1, 0.0]]), np.array([0]), SEEN).faded()
    restored = AccuracyCurves.restore(from_bytes(to_bytes(evidence.snapshot())))
    assert restored.seen.tobytes() == evidence.seen.tobytes()
    assert (restored.seen_classes, restored.unseen_classes) == (0.95, 0.0)
