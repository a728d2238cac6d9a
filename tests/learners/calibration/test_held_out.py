from __future__ import annotations

import numpy as np
from worlds import SPACE, Array, World

from stream_cgzsl.learners.calibration.curves import AccuracyCurves
from stream_cgzsl.learners.calibration.held_out import Scorer, measure_accuracies
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.windows.window import Window


class Spy:
    """Stands for a learner: notes what it was fitted on and which rows it was asked about."""

    def __init__(self) -> None:
        self.fits: list[tuple[dict[str, int], list[Array]]] = []

    def __call__(self, statistics: ClassStatistics) -> Scorer:
        asked: list[Array] = []
        self.fits.append((dict(statistics.moments.counts), asked))
        classes = len(statistics.class_ids)

        def score(rows: Array) -> Array:
            asked.append(rows)
            return np.zeros((len(rows), classes))

        return score


def gathered(window: Window, before: ClassStatistics | None = None) -> tuple[Spy, AccuracyCurves]:
    spy = Spy()
    before = (before or ClassStatistics.empty(SPACE)).after_descriptions(window)
    return spy, measure_accuracies(AccuracyCurves.none(), window, before, spy)


def asked_of(window: Window, rows: list[Array]) -> dict[str, int]:
    """How many of each class's rows are among those asked about."""
    asked = {row.tobytes() for block in rows for row in block}
    counts = {c: sum(row.tobytes() in asked for row in e.rows) for c, e in window.features.items()}
    return {c: n for c, n in counts.items() if n}


def test_seen_evidence_comes_from_a_fifth_of_each_class() -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6), rows=20)
    spy, evidence = gathered(window)
    trained, rows = spy.fits[0]
    assert trained == dict.fromkeys(world.ids(0, 6), 16)
    assert asked_of(window, rows) == dict.fromkeys(world.ids(0, 6), 4)
    assert evidence.seen_classes == 6


def test_unseen_evidence_comes_from_classes_without_a_single_trained_row() -> None:
    world = World()
    window = world.window(1, world.ids(0, 8), world.ids(0, 6), rows=20)
    spy, evidence = gathered(window)
    pretended: list[str] = []
    for trained, rows in spy.fits[1:]:
        asked = asked_of(window, rows)
        assert not asked.keys() & trained.keys()
        assert asked.keys() | trained.keys() == set(world.ids(0, 6))
        assert set(asked.values()) == {20}
        pretended += asked
    assert sorted(pretended) == world.ids(0, 6)
    assert evidence.unseen_classes == 6


def test_a_class_that_returns_is_never_pretended_unseen() -> None:
    world = World()
    first = world.window(1, world.ids(0, 4), world.ids(0, 4))
    known = ClassStatistics.empty(SPACE).after_descriptions(first).after_features(first)
    window = world.window(2, world.ids(4, 6), world.ids(3, 6))
    spy, evidence = gathered(window, known)
    assert evidence.unseen_classes == 2
    for trained, rows in spy.fits[1:]:
        assert "c0003" in trained and "c0003" not in asked_of(window, rows)


def test_single_rows_are_not_held_back() -> None:
    world = World()
    window = world.window(1, world.ids(0, 4), world.ids(0, 4), rows=1)
    spy, evidence = gathered(window)
    assert evidence.seen_classes == 0 and evidence.unseen_classes == 4
    assert all(len(trained) == 3 for trained, _ in spy.fits)


def test_a_lone_class_gives_no_unseen_evidence() -> None:
    world = World()
    _, evidence = gathered(world.window(1, world.ids(0, 2), world.ids(0, 1)))
    assert (evidence.seen_classes, evidence.unseen_classes) == (1, 0)


def test_counts_of_sampled_classes_are_split_in_proportion() -> None:
    world = World()
    window = world.window(1, world.ids(0, 2), world.ids(0, 2), rows=10)
    sampled = {c: type(e)(1000, e.rows) for c, e in window.features.items()}
    spy, _ = gathered(Window(1, window.described, (), sampled))
    assert spy.fits[0][0] == {"c0000": 800, "c0001": 800}
