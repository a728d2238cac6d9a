"""A softmax over all classes, trained on rows of every class: what systems that generate rows classify with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.baselines.networks import adam, descend, usual
from stream_cgzsl.learners.baselines.rows import Rows, epochs


@dataclass(frozen=True, eq=False)
class Head:
    """The score of a row x for class c: x . w_c + b_c."""

    w: Tensor  # [classes, numbers]
    b: Tensor  # [classes]

    @classmethod
    def fitted(
        cls,
        rows: Rows,
        classes: int,
        rate: float,
        count: int,
        batch: int,
        rng: torch.Generator,
        check: Callable[[], None],
    ) -> Head:
        """Softmax cross-entropy on `count` epochs of the rows; y are classes by index."""
        w, b = (part.to(rows.x.device) for part in usual(classes, rows.x.shape[1], rng))
        optimiser = adam((w, b), rate)
        for _, chosen in epochs(len(rows), batch, count, rng):
            check()
            descend(optimiser, F.cross_entropy(F.linear(rows.x[chosen], w, b), rows.y[chosen]))
        return cls(w.detach(), b.detach())
