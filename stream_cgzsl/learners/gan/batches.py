"""The rows of a window's training, and how batches of rows and classes are drawn from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """Features to train on and the class of each, a number."""

    x: Tensor  # [rows, features]
    y: Tensor  # [rows] int64

    def __len__(self) -> int:
        return len(self.y)

    def sorted(self) -> Rows:
        """By class, otherwise in the order they are in."""
        order = self.y.sort(stable=True).indices
        return Rows(self.x[order], self.y[order])


@dataclass(frozen=True, eq=False)
class SeenFirst:
    """The order of classes in training: seen ones first, each group by id. Losses over seen classes take a slice."""

    order: Tensor  # [classes]: the index, in order of id, of the class at this place
    seen: int

    @classmethod
    def of(cls, seen: Tensor) -> SeenFirst:
        """seen: [classes] bool, in order of id"""
        return cls(torch.cat((seen.nonzero()[:, 0], (~seen).nonzero()[:, 0])), int(seen.sum()))

    @property
    def unseen(self) -> int:
        return len(self.order) - self.seen

    def placed(self, rows: Rows) -> Rows:
        """Rows whose classes are numbered in order of id -> numbered in this order, and sorted by it."""
        places = torch.empty_like(self.order)
        places[self.order] = torch.arange(len(self.order), device=self.order.device)
        return Rows(rows.x, places[rows.y]).sorted()

    def draw_unseen(self, count: int, rng: torch.Generator) -> Tensor:
        """Unseen classes at random: [count], or [0] where there are none."""
        if not self.unseen:
            count = 0
        drawn = torch.randint(self.unseen or 1, (count,), generator=rng)
        return drawn.to(self.order.device) + self.seen


class Balanced:
    """Draws rows so that every class that has any is as likely as any other."""

    def __init__(self, y: Tensor) -> None:
        """y: [rows] classes, sorted"""
        counts = torch.bincount(y.cpu())
        self._classes = counts.nonzero()[:, 0]
        self._counts = counts
        self._starts = counts.cumsum(0) - counts
        self._device = y.device

    def draw(self, count: int, rng: torch.Generator) -> Tensor:
        """Indices of rows, [count]."""
        classes = self._classes[torch.randint(len(self._classes), (count,), generator=rng)]
        within = (torch.rand(count, generator=rng, dtype=torch.float64) * self._counts[classes]).to(torch.int64)
        return (self._starts[classes] + within).to(self._device)


def shuffled(rows: int, batch: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Indices of rows, batch after batch, epoch after epoch, without end."""
    while True:
        yield from torch.split(torch.randperm(rows, generator=rng), batch)
