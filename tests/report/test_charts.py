"""Where charts put things."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_cgzsl.report.charts import map as chart_map
from stream_cgzsl.report.charts.line import Series, lines
from stream_cgzsl.report.charts.plot import Axis, path, spread_out
from stream_cgzsl.report.charts.scale import evenly_spaced, linear, pick_labels, sweep
from stream_cgzsl.report.document import FeatureMap, MapPoint
from stream_cgzsl.report.markup import el, fragment

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(values, st.booleans())
def test_a_scale_holds_all_values_between_its_ticks(numbers: list[float], zero: bool) -> None:
    scale = linear(numbers, zero=zero)
    assert all(-1e-6 <= scale(number) <= 1 + 1e-6 for number in numbers)
    assert (scale.ticks[0], scale.ticks[-1]) == (scale.low, scale.high)
    assert 2 <= len(scale.ticks) <= 9 and all(a < b for a, b in pairwise(scale.ticks))
    assert not zero or scale.low <= 0 <= scale.high


@pytest.mark.parametrize(
    ("numbers", "ticks"),
    [
        ([62.0, 84.1], (60, 65, 70, 75, 80, 85)),
        ([97.0, 100.0], (97, 98, 99, 100)),
        ([50.0], (44, 46, 48, 50, 52, 54, 56)),
        ([], (0, 0.2, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_ticks_are_round(numbers: list[float], ticks: tuple[float, ...]) -> None:
    assert linear(numbers, most=100.0).ticks == pytest.approx(ticks)


def test_a_sweep_over_powers_of_ten_is_logarithmic() -> None:
    scale = sweep([0.01, 0.1, 1, 10])
    assert (scale.ticks, scale.logarithmic) == (pytest.approx((0.01, 0.1, 1, 10)), True)
    assert [scale(x) for x in (0.01, 0.1, 1, 10)] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert not sweep([0.0, 10, 1000]).logarithmic
    assert not sweep([1, 2, 3]).logarithmic


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (range(1, 2), [1]),
        (range(1, 8), [1, 2, 3, 4, 5, 6, 7]),
        (range(1, 21), [1, 5, 10, 15, 20]),
        (range(2, 42, 2), [2, 10, 20, 30, 40]),
        (range(4, 20), [5, 10, 15, 19]),
        (range(1, 100), [1, 20, 40, 60, 80, 99]),
        (range(1, 41, 2), [1, 9, 17, 25, 33, 39]),
    ],
)
def test_round_windows_are_labelled(numbers: range, expected: list[int]) -> None:
    assert [numbers[i] for i in pick_labels(numbers)] == expected


def test_windows_are_evenly_spaced_and_a_single_one_is_in_the_middle() -> None:
    assert (evenly_spaced(1), evenly_spaced(3)) == ([0.5], [0.0, 0.5, 1.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_labels_keep_their_distance_and_their_order(wanted: list[float]) -> None:
    gap = 0.1
    moved = sorted(zip(wanted, spread_out(wanted, gap), strict=True))
    assert all(after - before >= gap - 1e-9 for (_, before), (_, after) in pairwise(moved))
    assert all(-gap <= place <= 1 + gap for _, place in moved)


def test_labels_that_do_not_meet_stay_where_they_are() -> None:
    assert spread_out([0.9, 0.1, 0.5], 0.1) == [0.9, 0.1, 0.5]


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    drawn = path([(0.0, 0.0), (0.25, 0.5), None, (0.75, 1.0), (1.0, 0.5)], "line")
    assert drawn.get("d") == "M0 100L25 50M75 0L100 50"


def test_an_isolated_point_has_a_marker_even_in_a_long_line() -> None:
    numbers: list[float | None] = [1.0] * 50 + [None, 2.0, None] + [3.0] * 50
    drawn = lines("n", "d", [Series("seen", "seen", "circle", numbers)], evenly_spaced(103), Axis([]), linear([1, 3]))
    tips = [title.text for use in drawn.iter("use") for title in use.iter("title")]
    assert tips == ["seen 2.0", "seen 3.0"]  # the lonely one and the last


def test_a_map_gives_near_classes_different_colours() -> None:
    points = [MapPoint(x=float(i), y=0.0, class_index=i, replayed=False) for i in range(12)]
    drawn = chart_map.scatter("n", "d", FeatureMap(class_ids=tuple("abcdefghijkl"), points=tuple(points)))
    colours = [group.get("class", "").split("-")[-1] for group in drawn.iter("g")]
    assert all(a != b for a, b in pairwise(colours)) and len(set(colours)) == 6


def test_text_in_a_tree_is_escaped() -> None:
    element = el("p", "<b>", el("i", '"&'), "</p>", title='">', hidden=True, lang=None)
    assert fragment(element) == '<p title="&quot;&gt;" hidden="">&lt;b&gt;<i>"&amp;</i>&lt;/p&gt;</p>'
