"""The classes of a window, as `paper` and `authors-code` train on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.batches import SeenFirst
from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import BLOCK_ROWS, transform_of, transformed
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Examples

Means = dict[str, Array]
"""The mean of a class's features, float64, by class id."""


@dataclass(frozen=True, eq=False)
class Classes:
    """In the order of `places`."""

    places: SeenFirst
    attributes: Tensor  # [classes, attributes], of length 1
    means: Tensor  # [seen, features], as features come
    near: Tensor  # [classes, n, features]: the means of the n nearest seen classes, of length 1
    similarity: Tensor  # [classes, n]: attribute cosines with them
    nearness: Tensor  # [classes, n]: 1, or 0 where there are fewer
    signed: bool

    @classmethod
    def of(cls, statistics: ClassStatistics, means: Means, neighbours: int, device: torch.device) -> Classes:
        places = SeenFirst.of(torch.from_numpy(statistics.seen).to(device))
        attributes = attributes_of(statistics, device)[places.order]
        of_seen = np.stack([means[c] for c in statistics.class_ids if c in statistics.moments.counts])
        seen_means = torch.from_numpy(of_seen).to(device, torch.float32)
        positions, similarity, nearness = losses.neighbours(attributes, places.seen, neighbours)
        near = losses.unit(seen_means)[positions]
        return cls(places, attributes, seen_means, near, similarity, nearness, statistics.space.signed)

    def others(self, classes: Tensor) -> Tensor:
        """Those that are not among [rows] classes: [classes - distinct]."""
        return torch.bincount(classes, minlength=len(self.attributes)).eq(0).nonzero()[:, 0]


def attributes_of(statistics: ClassStatistics, device: torch.device) -> Tensor:
    """[classes, attributes] float32 at length 1."""
    return losses.unit(torch.from_numpy(statistics.attributes).to(device, torch.float32))


def as_they_come(rows: Array, rescaled: bool, signed: bool) -> Tensor:
    """[rows, features] float64, as they are; `rescaled`: their square roots, at a length that makes numbers about 1."""
    if not rescaled:
        return torch.from_numpy(np.array(rows, np.float64, ndmin=2))
    x: Tensor = rows.shape[1] ** 0.5 * transformed(rows, transform_of(signed))
    return x


def means_with(before: ClassStatistics, means: Means, examples: Mapping[str, Examples], rescaled: bool) -> Means:
    """The means of all seen classes once these examples are learned; `means` are those of the classes seen before."""
    found = {class_id: means[class_id] for class_id in before.described if class_id in before.moments.counts}
    for class_id, given in examples.items():
        if not len(given.rows):
            continue
        blocks = (given.rows[start : start + BLOCK_ROWS] for start in range(0, len(given.rows), BLOCK_ROWS))
        total = sum(as_they_come(block, rescaled, before.space.signed).sum(dim=0).numpy() for block in blocks)
        known, fresh = before.moments.counts.get(class_id, 0), np.asarray(total / len(given.rows))
        if known:
            fresh = (known * found[class_id] + given.count * fresh) / (known + given.count)
        found[class_id] = fresh
    return found


def remembered(means: Means) -> Snapshot:
    return Snapshot({"means": np.stack([means[c] for c in sorted(means)])}, {"means_of": sorted(means)})


def means_in(memory: Snapshot) -> Means:
    """Those that were remembered; none before the first window with features."""
    return dict(zip(memory.meta.get("means_of", ()), memory.arrays.get("means", ()), strict=True))


def class_means(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct classes among [rows], in order, and the mean of each one's rows: [m], [m, features]."""
    distinct, index = torch.unique(classes, return_inverse=True)
    members = F.one_hot(index, len(distinct)).T.to(x.dtype)  # [m, rows]
    return distinct, (members / members.sum(1, keepdim=True)) @ x
