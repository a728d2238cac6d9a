from __future__ import annotations

import numpy as np
import torch

from stream_cgzsl.learners.baselines.reservoir import Reservoir, forget
from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.windows.window import Examples


def examples(class_id: str, first: int, count: int) -> dict[str, Examples]:
    rows = np.arange(first, first + count, dtype=np.float32)[:, None]
    return {class_id: Examples(count, rows)}


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_class_never_has_more_than_its_rows() -> None:
    reservoir = Reservoir.empty(4)
    for number in range(1, 6):
        reservoir = reservoir.after(number, examples("a", 10 * number, 3), rng(number))
        assert len(reservoir) == min(4, 3 * number)
    assert reservoir.tasks == {"a": 5}


def test_every_row_of_every_window_is_as_likely_to_stay() -> None:
    kept = np.zeros(30)
    for seed in range(600):
        reservoir = Reservoir.empty(5)
        for number in range(3):
            reservoir = reservoir.after(number, examples("a", 10 * number, 10), rng(3 * seed + number))
        kept[reservoir.rows["a"][:, 0].astype(int)] += 1
    assert kept.sum() == 3000
    assert abs(kept - 100).max() < 45  # five standard deviations


def test_retired_classes_leave_nothing() -> None:
    reservoir = Reservoir.empty(4).after(1, examples("a", 0, 3) | examples("b", 5, 3), rng(0))
    memory = Snapshot({**reservoir.arrays(), "layers.w0": np.zeros(1)}, {"tasks": reservoir.meta()})
    left = forget(memory, ["a"])
    assert sorted(left.arrays) == ["exemplars.b", "keys.b", "layers.w0"]
    assert Reservoir.restore(4, left).tasks == {"b": 1} == reservoir.without(["a"]).tasks


def test_a_smaller_memory_keeps_the_rows_it_would_have_kept() -> None:
    large = Reservoir.empty(6).after(1, examples("a", 0, 10), rng(0))
    small = Reservoir.empty(2).after(1, examples("a", 0, 10), rng(0))
    cut = Reservoir.restore(2, Snapshot(large.arrays(), {"tasks": large.meta()}))
    np.testing.assert_array_equal(cut.rows["a"], small.rows["a"])
