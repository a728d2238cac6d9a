"""The seen-unseen curve against a sweep done by hand, and against one done the slow way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stream_cgzsl.evaluation.answers import Answers
from stream_cgzsl.evaluation.curve import seen_unseen_curve

SEEN = np.array([True, False])


def answers(*rows: tuple[int, bool, float]) -> Answers:
    """Of each row: its class, whether that is the best of its group, and the lead of the best seen class."""
    truth, in_group, lead = (np.array(column) for column in zip(*rows, strict=True))
    return Answers(truth, np.zeros(len(truth), bool), in_group, lead.astype(float))


def points(*rows: tuple[int, bool, float], seen: Any = SEEN) -> list[tuple[float, float]]:
    curve = seen_unseen_curve(answers(*rows), seen)
    assert curve is not None
    return list(zip(curve.seen.tolist(), curve.unseen.tolist(), strict=True))


def test_perfectly_apart() -> None:
    """The seen row leads, the unseen row does not: between the two both are right."""
    curve = seen_unseen_curve(answers((0, True, 1.0), (1, True, -1.0)), SEEN)
    assert curve is not None
    assert (curve.offsets.tolist(), curve.seen.tolist(), curve.unseen.tolist()) == ([-1, 1], [1, 1, 0], [0, 1, 1])
    assert curve.area == 1.0


def test_the_wrong_way_round() -> None:
    """Whatever the offset, one of the two is wrong."""
    curve = seen_unseen_curve(answers((0, True, -1.0), (1, True, 1.0)), SEEN)
    assert curve is not None
    assert (curve.seen.tolist(), curve.unseen.tolist(), curve.area) == ([1, 0, 0], [0, 0, 1], 0.0)


def test_equal_leads_change_together() -> None:
    curve = seen_unseen_curve(answers((0, True, 0.5), (1, True, 0.5)), SEEN)
    assert curve is not None
    assert (curve.seen.tolist(), curve.unseen.tolist(), curve.area) == ([1, 0], [0, 1], 0.5)


def test_by_hand_with_three_classes() -> None:
    """Class 0 is seen with rows leading by 3, 1 and one that is always wrong; class 1 and class 2 are unseen."""
    rows = (
        (0, True, 3.0),
        (0, True, 1.0),
        (0, False, 2.0),
        (1, True, 2.0),
        (1, True, 0.0),
        (2, True, -1.0),
        (2, False, 0.0),
    )
    assert points(*rows, seen=np.array([True, False, False])) == [
        (pytest.approx(2 / 3), 0.0),
        (pytest.approx(2 / 3), 0.25),
        (pytest.approx(2 / 3), 0.5),
        (pytest.approx(1 / 3), 0.5),
        (pytest.approx(1 / 3), 0.75),
        (0.0, 0.75),
    ]
    curve = seen_unseen_curve(answers(*rows), np.array([True, False, False]))
    assert curve is not None
    assert curve.area == pytest.approx(0.5 / 3 + 0.75 / 3)


def test_accuracies_at_an_offset() -> None:
    curve = seen_unseen_curve(answers((0, True, 1.0), (1, True, -1.0)), SEEN)
    assert curve is not None
    assert [curve.at(offset) for offset in (-2, -1, 0, 1, 1.5)] == [(1, 0), (1, 0), (1, 1), (1, 1), (0, 1)]


@pytest.mark.parametrize("truth", [0, 1])
def test_one_kind_of_rows_makes_no_curve(truth: int) -> None:
    assert seen_unseen_curve(answers((truth, True, 1.0)), SEEN) is None


def test_the_area_is_zero_if_nothing_is_right() -> None:
    curve = seen_unseen_curve(answers((0, False, 1.0), (1, False, 0.0)), SEEN)
    assert curve is not None
    assert (curve.seen.tolist(), curve.unseen.tolist(), curve.area) == ([0], [0], 0)


def test_same_as_a_brute_force_sweep() -> None:
    rng = np.random.default_rng(5)
    seen = np.arange(7) % 2 == 0
    truth, in_group = rng.integers(0, 6, 400), rng.random(400) < 0.8
    lead = np.round(rng.normal(size=400) + seen[truth], 1)  # many equal ones
    curve = seen_unseen_curve(Answers(truth, in_group, in_group, lead), seen)
    assert curve is not None

    def swept(offset: float) -> tuple[float, float]:
        right = in_group & np.where(seen[truth], lead >= offset, lead < offset)
        shares = [right[truth == c].mean() for c in range(6)]
        return float(np.mean(shares[0::2])), float(np.mean(shares[1::2]))

    steps = [*np.unique(lead), np.inf]
    expected = [swept(offset) for offset in steps]
    assert [curve.at(offset) for offset in steps] == [pytest.approx(pair) for pair in expected]
    seen_line, unseen_line = map(np.array, zip(*expected, strict=True))
    area = ((seen_line[:-1] - seen_line[1:]) * (unseen_line[:-1] + unseen_line[1:])).sum() / 2
    assert curve.area == pytest.approx(area)
