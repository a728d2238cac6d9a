"""How rows and classes are drawn."""

from __future__ import annotations

from itertools import islice

import torch

from stream_cgzsl.learners.gan.batches import Balanced, Rows, SeenFirst, shuffled


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_seen_classes_come_first_in_order() -> None:
    places = SeenFirst.of(torch.tensor([False, True, False, True]))
    assert (places.order.tolist(), places.seen, places.unseen) == ([1, 3, 0, 2], 2, 2)


def test_rows_are_renumbered_and_sorted() -> None:
    places = SeenFirst.of(torch.tensor([False, True, True]))
    placed = places.placed(Rows(torch.arange(4.0)[:, None], torch.tensor([2, 1, 0, 1])))
    assert placed.y.tolist() == [0, 0, 1, 2]
    assert placed.x[:, 0].tolist() == [1, 3, 0, 2]


def test_unseen_classes_are_drawn_from_their_places() -> None:
    places = SeenFirst.of(torch.tensor([False, True, False, True]))
    assert set(places.draw_unseen(100, rng()).tolist()) == {2, 3}


def test_without_unseen_classes_none_is_drawn() -> None:
    assert SeenFirst.of(torch.tensor([True])).draw_unseen(5, rng()).shape == (0,)


def test_balanced_draws_give_every_class_its_share_and_every_row_a_chance() -> None:
    y = torch.tensor([0] * 90 + [2] * 10)
    drawn = Balanced(y).draw(20_000, rng())
    share = float((y[drawn] == 2).float().mean())
    assert abs(share - 0.5) < 0.02
    assert set(drawn.tolist()) == set(range(100))


def test_an_epoch_has_every_row_once() -> None:
    epoch = list(islice(shuffled(10, 4, rng()), 6))
    assert [len(batch) for batch in epoch] == [4, 4, 2, 4, 4, 2]
    first, second = torch.cat(epoch[:3]).tolist(), torch.cat(epoch[3:]).tolist()
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
