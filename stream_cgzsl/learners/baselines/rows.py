"""Labelled rows to train on, and how batches are drawn from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from stream_cgzsl.windows.window import Examples


@dataclass(frozen=True, eq=False)
class Rows:
    """Features as they came, and the class of each, by index in order of id."""

    x: Tensor  # [rows, features] float32
    y: Tensor  # [rows] int64

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, chosen: Tensor) -> Rows:
        return Rows(self.x[chosen], self.y[chosen])

    @classmethod
    def none(cls, features: int, device: torch.device) -> Rows:
        return cls(torch.zeros(0, features, device=device), torch.zeros(0, dtype=torch.int64, device=device))

    @classmethod
    def of(
        cls, examples: Mapping[str, Examples], class_ids: Sequence[str], features: int, device: torch.device
    ) -> Rows:
        """A window's rows, class by class."""
        place = {class_id: index for index, class_id in enumerate(class_ids)}
        rows = [cls.none(features, device)]
        for class_id, given in examples.items():
            x = torch.from_numpy(np.array(given.rows, np.float32)).to(device)
            rows.append(cls(x, torch.full((len(x),), place[class_id], device=device)))
        return joined(*rows)


def joined(*rows: Rows) -> Rows:
    return Rows(torch.cat([part.x for part in rows]), torch.cat([part.y for part in rows]))


def epochs(rows: int, batch: int, count: int, rng: torch.Generator) -> Iterator[tuple[int, Tensor]]:
    """`count` times all rows in a new order, in batches: the epoch from 0, and the indices of a batch's rows."""
    for epoch in range(count):
        for indices in torch.split(torch.randperm(rows, generator=rng), batch):
            yield epoch, indices


def within(classes: Tensor, y: Tensor) -> Tensor:
    """The place of each of `y` among `classes`, which are sorted and have all of them."""
    return torch.searchsorted(classes, y)
