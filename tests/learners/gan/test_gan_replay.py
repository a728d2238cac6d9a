"""Replay keeps what is classified correctly, counts the rest, and mixes with a window's own rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from stream_cgzsl.learners.gan import replay as module
from stream_cgzsl.learners.gan.batches import Rows
from stream_cgzsl.learners.gan.replay import mixed, nothing, real, replay
from stream_cgzsl.windows.window import Examples


def numbered(labels: Tensor) -> Tensor:
    """Features that say their class and their number within the call."""
    return torch.stack((labels.float(), torch.arange(len(labels)).float()), dim=1)


def test_only_features_that_are_classified_correctly_are_kept() -> None:
    classes = torch.tensor([1, 4])

    def classify(x: Tensor) -> Tensor:  # wrong about every third row
        return torch.where(x[:, 1] % 3 == 0, -1, x[:, 0].long())

    found = replay(classes, 3, numbered, classify)
    assert found.rows.y.tolist() == [1, 1, 4, 4]
    assert found.rows.x.tolist() == [[1, 1], [1, 2], [4, 4], [4, 5]]
    assert found.record() == {"replay_kept": 4, "replay_rejected": 2}


def test_a_class_may_lose_all_its_rows() -> None:
    found = replay(torch.tensor([0, 1]), 2, numbered, lambda x: torch.zeros(len(x), dtype=torch.int64))
    assert (found.rows.y.tolist(), found.rejected) == ([0, 0], 2)


def test_many_rows_are_generated_a_part_at_a_time() -> None:
    asked: list[int] = []

    def generate(labels: Tensor) -> Tensor:
        asked.append(len(labels))
        return numbered(labels)

    found = replay(torch.arange(3), 2000, generate, lambda x: x[:, 0].long())
    assert (max(asked), sum(asked), len(asked)) == (module.BLOCK_ROWS, 6000, -(-6000 // module.BLOCK_ROWS))
    assert len(found.rows) == 6000


def test_nothing_is_empty() -> None:
    empty = nothing(5)
    assert (empty.rows.x.shape, len(empty.rows), empty.rejected) == ((0, 5), 0, 0)


def test_real_rows_are_published_features_with_their_class() -> None:
    rows = real({"b": Examples(1, np.array([[9.0, 16.0]]))}, ("a", "b"), "sqrt", "cpu")
    torch.testing.assert_close(rows.x, torch.tensor([[0.6, 0.8]]))
    assert (rows.y.tolist(), rows.x.dtype) == ([1], torch.float32)


def test_mixed_has_both() -> None:
    one, two = Rows(torch.zeros(1, 2), torch.tensor([3])), Rows(torch.ones(2, 2), torch.tensor([0, 3]))
    both = mixed(one, two)
    assert (both.y.tolist(), both.x[:, 0].tolist()) == ([3, 0, 3], [0, 1, 1])
