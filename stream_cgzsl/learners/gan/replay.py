"""Generative replay: features that G generates of the seen classes, in place of examples that are not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stream_cgzsl.learners.gan.batches import Rows
from stream_cgzsl.learners.statistics.features import BLOCK_ROWS, transformed
from stream_cgzsl.windows.window import Examples


@dataclass(frozen=True, eq=False)
class Replay:
    """Generated rows that were classified correctly, and the number of rows that were not."""

    rows: Rows
    rejected: int

    def record(self) -> dict[str, Any]:
        """For `Generation.calibration`."""
        return {"replay_kept": len(self.rows), "replay_rejected": self.rejected}


def nothing(features: int, device: torch.device | str = "cpu") -> Replay:
    return Replay(Rows(torch.zeros(0, features, device=device), torch.zeros(0, dtype=torch.int64, device=device)), 0)


def replay(
    classes: Tensor, rows: int, generate: Callable[[Tensor], Tensor], classify: Callable[[Tensor], Tensor]
) -> Replay:
    """`rows` features of each of `classes`, without those that are classified as another class.

    classes: [n] numbers; generate: [rows] classes -> [rows, features]; classify: [rows, features] -> [rows] classes
    """
    kept: list[Tensor] = []
    labels: list[Tensor] = []
    wanted = classes.repeat_interleave(rows)
    with torch.no_grad():
        for part in torch.split(wanted, BLOCK_ROWS):
            x = generate(part)
            right = classify(x) == part
            kept.append(x[right])
            labels.append(part[right])
    y = torch.cat(labels)
    return Replay(Rows(torch.cat(kept), y), len(wanted) - len(y))


def real(
    examples: Mapping[str, Examples], class_ids: tuple[str, ...], transform: str, device: torch.device | str
) -> Rows:
    """A window's rows as published features of length 1, float32."""
    number = {class_id: i for i, class_id in enumerate(class_ids)}
    x = [transformed(given.rows, transform, device).to(torch.float32) for given in examples.values()]
    y = [torch.full((len(given.rows),), number[class_id], device=device) for class_id, given in examples.items()]
    return Rows(torch.cat(x), torch.cat(y))


def mixed(fresh: Rows, replayed: Rows) -> Rows:
    """The window's own rows and the replayed ones."""
    return Rows(torch.cat((fresh.x, replayed.x)), torch.cat((fresh.y, replayed.y)))
