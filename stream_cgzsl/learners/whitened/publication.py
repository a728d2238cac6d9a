"""Steps 7 and 9: from projections in the whitened space to scores, and to a generation of published features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch

from stream_cgzsl.learners.calibration.held_out import Scorer
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import transformed
from stream_cgzsl.learners.whitened.space import TINY
from stream_cgzsl.learners.whitened.whitening import Whitening
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.cuda import scores
from stream_cgzsl.serving.generation import Generation

EXPONENT = 0.5
LEAN = 0.35


class Centred(Protocol):
    """What publishing needs of a space."""

    @property
    def whitening(self) -> Whitening: ...
    @property
    def seen(self) -> torch.Tensor: ...
    @property
    def centre(self) -> torch.Tensor: ...


class Head(NamedTuple):
    """Score of a whitened feature x for class c: x . weights[c] + biases[c]."""

    weights: torch.Tensor  # [classes, features]
    biases: torch.Tensor  # [classes]


def head(projections: torch.Tensor, signal: float, exponent: float = EXPONENT, lean: float = LEAN) -> Head:
    """Between cosine (exponent 1, no lean) and a Gaussian log-density: w = P / |P|^0.5, bias = -0.35 sb |P|^1.5."""
    lengths = torch.linalg.vector_norm(projections, dim=1).clamp_min(TINY)
    return Head(projections / lengths[:, None] ** exponent, -lean * signal * lengths ** (2 - exponent))


def published_vectors(space: Centred, head: Head) -> torch.Tensor:
    """[classes, features] float64: weights on published features, not yet divided by their common scale."""
    return space.whitening.gain * space.whitening.out_of(head.weights)


def scorer(space: Centred, head: Head, transform: str) -> Scorer:
    """Scores as `publish` publishes them, before they are divided by their common scale."""
    vectors, biases = published_vectors(space, head).to(torch.float32), head.biases.to(torch.float32)

    def score(rows: Array) -> Array:
        published = transformed(rows, transform, space.centre.device)
        found: Array = scores(published, vectors, biases, space.centre).cpu().numpy()
        return found

    return score


def publish(
    number: int, statistics: ClassStatistics, space: Centred, head: Head, offset: float, calibration: Mapping[str, Any]
) -> Generation:
    """Scores of seen classes are lower by `offset`. All scores are divided by one number, which changes no answer."""
    vectors = published_vectors(space, head)
    scale = float(vectors.square().sum(dim=1).mean().sqrt())
    scale = scale if scale >= TINY else 1.0
    biases = head.biases - offset * space.seen.to(torch.float64)
    return Generation(
        number=number,
        class_ids=statistics.class_ids,
        seen=statistics.seen,
        vectors=(vectors / scale).cpu().numpy(),
        biases=(biases / scale).cpu().numpy(),
        centre=space.centre.cpu().numpy(),
        transform=statistics.transform,
        calibration=calibration,
    )
