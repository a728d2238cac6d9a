from __future__ import annotations

import numpy as np
import pytest
from worlds import SPACE, World, arrays_equal

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.windows.window import Description, Examples, Window


def taken(statistics: ClassStatistics, window: Window) -> ClassStatistics:
    return statistics.after_descriptions(window).after_features(window)


@pytest.fixture
def learned() -> ClassStatistics:
    world = World()
    return taken(ClassStatistics.empty(SPACE), world.window(1, world.ids(0, 4), world.ids(0, 3)))


def test_classes_are_seen_once_they_have_rows(learned: ClassStatistics) -> None:
    assert learned.class_ids == ("c0000", "c0001", "c0002", "c0003")
    assert learned.seen.tolist() == [True, True, True, False]
    assert (learned.means.shape, learned.attributes.shape) == ((3, 16), (4, 6))


def test_examples_are_counted_even_where_only_some_were_kept(learned: ClassStatistics) -> None:
    assert learned.examples.tolist() == [12, 12, 12, 0]
    window = Window(2, features={"c0001": Examples(500, World().rows("c0001", 10))})
    assert taken(learned, window).examples.tolist() == [12, 512, 12, 0]


def test_a_revised_class_keeps_its_rows(learned: ClassStatistics) -> None:
    revised = learned.after_descriptions(Window(2, (Description("c0001", np.ones(6, np.float32), "jay"),)))
    assert revised.described["c0001"].name == "jay"
    assert revised.attributes[1].tolist() == [1.0] * 6
    assert revised.moments is learned.moments


def test_a_retired_class_is_gone(learned: ClassStatistics) -> None:
    left = learned.after_descriptions(Window(2, retired=("c0001", "never-heard-of")))
    assert left.class_ids == ("c0000", "c0002", "c0003")
    assert dict(left.moments.counts) == {"c0000": 12, "c0002": 12}


def test_a_retired_class_that_is_described_again_starts_fresh(learned: ClassStatistics) -> None:
    description = Description("c0001", np.zeros(6, np.float32))
    again = learned.after_descriptions(Window(2, (description,), ("c0001",)))
    assert again.class_ids == learned.class_ids
    assert again.seen.tolist() == [True, False, True, False]


def test_a_class_that_returns_is_merged(learned: ClassStatistics) -> None:
    world = World(seed=1)
    window = world.window(2, learned=["c0001"], rows=30)
    again = taken(learned, window)
    rows = np.sqrt(window.features["c0001"].rows.astype(np.float64))
    fresh = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0)
    assert again.moments.counts["c0001"] == 42
    np.testing.assert_allclose(again.moments.means["c0001"], (12 * learned.means[1] + 30 * fresh) / 42, rtol=1e-6)


def test_a_later_change_leaves_earlier_statistics_alone(learned: ClassStatistics) -> None:
    before = to_bytes(learned.snapshot())
    world = World(seed=2)
    taken(learned, world.window(2, world.ids(2, 9), world.ids(1, 6)))
    assert to_bytes(learned.snapshot()) == before


def test_snapshots_restore_every_byte(learned: ClassStatistics) -> None:
    named = learned.after_descriptions(Window(2, (Description("é", np.ones(6, np.float32), "Zaunkönig"),), ("c0000",)))
    stored: Snapshot = from_bytes(to_bytes(named.snapshot()))
    restored = ClassStatistics.restore(SPACE, stored)
    assert (restored.class_ids, restored.moments.counts) == (named.class_ids, named.moments.counts)
    assert [d.name for d in restored.described.values()] == [d.name for d in named.described.values()]
    assert (restored.moments.rows, restored.moments.freedom) == (named.moments.rows, named.moments.freedom)
    assert arrays_equal(dict(restored.moments.means), dict(named.moments.means))
    assert restored.moments.scatter.tobytes() == named.moments.scatter.tobytes()
    assert restored.attributes.tobytes() == named.attributes.tobytes()


def test_features_of_undescribed_classes_are_refused(learned: ClassStatistics) -> None:
    with pytest.raises(UsageError, match="features of class 'c0009', which is not described"):
        taken(learned, World().window(2, learned=["c0009"]))


def test_wrong_dimensions_are_refused(learned: ClassStatistics) -> None:
    with pytest.raises(UsageError, match="class 'x' came with 5 attributes; this stream has 6"):
        learned.after_descriptions(Window.from_arrays(2, {"x": np.ones(5)}, {}))
    with pytest.raises(UsageError, match="class 'c0001' came with 3 features; this stream has 16"):
        learned.after_features(Window.from_arrays(2, {}, {"c0001": np.ones((2, 3))}))
