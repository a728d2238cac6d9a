"""AccuracyCurves for learners that train once a window."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import SPACE, World, stream

from stream_cgzsl.learners.calibration.curves import OFFSETS, WHITENED, AccuracyCurves, Prior
from stream_cgzsl.learners.calibration.prequential import add_seen, add_unseen, best_offset, withhold
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import transformed
from stream_cgzsl.learners.statistics.learner import Lesson


def lesson(second: bool) -> Lesson:
    """The first or the second window of a stream."""
    windows = stream(World())
    before = ClassStatistics.empty(SPACE)
    if second:
        before = before.after_descriptions(windows[0]).after_features(windows[0])
    window = windows[int(second)]
    before = before.after_descriptions(window)
    return Lesson(window, before, before.after_features(window))


def test_held_rows_are_no_part_of_the_means() -> None:
    given = lesson(second=False)
    withheld = withhold(given, "cpu")
    for class_id, examples in withheld.trained.items():
        expected = transformed(examples.rows, "sqrt").mean(dim=0).numpy()
        np.testing.assert_allclose(withheld.statistics.moments.means[class_id], expected, rtol=1e-12)
        assert len(examples.rows) + len(withheld.held[class_id]) == len(given.window.features[class_id].rows)


def test_a_class_that_returns_keeps_what_it_had() -> None:
    given = lesson(second=True)
    withheld = withhold(given, "cpu")
    old, new = given.before.moments, withheld.trained["c0000"]
    fresh = transformed(new.rows, "sqrt").mean(dim=0).numpy()
    count = old.counts["c0000"]
    expected = (count * old.means["c0000"] + new.count * fresh) / (count + new.count)
    np.testing.assert_allclose(withheld.statistics.moments.means["c0000"], expected, rtol=1e-12)


def test_everything_else_is_as_after_the_lesson() -> None:
    given = lesson(second=True)
    moments = withhold(given, "cpu").statistics.moments
    assert moments.scatter is given.after.moments.scatter
    assert moments.counts == given.after.moments.counts


def test_only_classes_new_to_the_old_weights_are_asked_about_as_unseen() -> None:
    given = lesson(second=True)
    asked: list[int] = []

    def score(rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return np.zeros((len(rows), len(given.before.class_ids)))

    evidence = add_unseen(AccuracyCurves.none(), given.window, given.before, score)
    assert (evidence.unseen_classes, evidence.seen_classes) == (6, 0)  # c0000 returns
    assert sum(asked) == 6 * 12


def test_held_rows_are_evidence_of_seen_classes() -> None:
    given = lesson(second=True)
    withheld = withhold(given, "cpu")
    classes = len(withheld.statistics.class_ids)
    evidence = add_seen(AccuracyCurves.none(), withheld, lambda rows: np.zeros((len(rows), classes)))
    assert (evidence.unseen_classes, evidence.seen_classes) == (0, 7)


def curves(seen: float, unseen: float, seen_best: float, unseen_best: float) -> AccuracyCurves:
    """Seen classes are right up to an offset, unseen ones from one on."""
    return AccuracyCurves(
        100 * seen_best * (seen > OFFSETS), 100 * unseen_best * (unseen < OFFSETS), seen_classes=100, unseen_classes=100
    )


@pytest.mark.parametrize("best", [(0.9, 0.9), (0.9, 0.1), (0.2, 0.9)])
def test_the_offset_lies_where_both_are_at_their_best_however_good_that_is(best: tuple[float, float]) -> None:
    assert 0.3 < best_offset(curves(0.4, 0.3, *best), WHITENED) < 0.4


def test_without_evidence_of_unseen_classes_the_offset_is_the_expected_one() -> None:
    seen_only = AccuracyCurves(50 * (OFFSETS < 0.5), np.zeros(len(OFFSETS)), seen_classes=50, unseen_classes=0)
    for prior in (WHITENED, Prior(0.02, 0.01)):
        assert best_offset(seen_only, prior) == best_offset(AccuracyCurves.none(), prior) == prior.expected


def test_a_flat_curve_leaves_the_offset_where_the_other_side_wants_it() -> None:
    """Old weights that get few unseen classes right, at any offset, must not push seen classes aside."""
    seen = 12 * np.clip(1 - 1.4 * OFFSETS, 0, 1)
    few = AccuracyCurves(seen, 7 * 0.15 * (OFFSETS > 0.05), seen_classes=12, unseen_classes=7)
    assert 0.05 < best_offset(few, WHITENED) < 0.15


def test_evidence_of_nothing_right_is_survived() -> None:
    nothing = AccuracyCurves(np.zeros(len(OFFSETS)), np.zeros(len(OFFSETS)), seen_classes=5, unseen_classes=5)
    assert best_offset(nothing, WHITENED) == pytest.approx(WHITENED.expected, abs=0.02)
