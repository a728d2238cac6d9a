"""Features from [least, most] to [0, 1], number by number, as the authors scale theirs before training.

They take the range from all training rows; a stream has only its first window, whose range stays. Later rows may lie
outside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from stream_cgzsl.learners.baselines.networks import to_array, to_tensor
from stream_cgzsl.schemas import Array


@dataclass(frozen=True, eq=False)
class Range:
    least: Tensor  # [features]
    span: Tensor  # [features]; where a number never changes its size, or 1 if that is more

    @classmethod
    def of(cls, x: Tensor) -> Range:
        least, most = x.amin(0), x.amax(0)
        span = most - least
        return cls(least, torch.where(span > 0, span, most.abs().clamp_min(1)))

    def scaled(self, x: Tensor) -> Tensor:
        return (x - self.least) / self.span

    def restored(self, scaled: Tensor) -> Tensor:
        return scaled * self.span + self.least

    def folded(self, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """What gives for a row x what w and b give for its scaled one: [outputs, features], [outputs]"""
        return w / self.span, b - (w / self.span) @ self.least

    def arrays(self) -> dict[str, Array]:
        return {"range.least": to_array(self.least), "range.span": to_array(self.span)}

    @classmethod
    def loaded(cls, arrays: Mapping[str, Array], device: torch.device) -> Range:
        return cls(*(to_tensor(arrays[f"range.{name}"], device) for name in ("least", "span")))
