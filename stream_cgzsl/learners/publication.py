"""Step 9: from the standardised space to a generation that scores published features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from stream_cgzsl.generation import Generation
from stream_cgzsl.learners.projection import Head
from stream_cgzsl.learners.standard import TINY, Standard
from stream_cgzsl.learners.statistics import Statistics


def publish(
    number: int,
    statistics: Statistics,
    standard: Standard,
    head: Head,
    offset: float,
    calibration: Mapping[str, Any],
) -> Generation:
    """Seen classes answer for `offset` less. All scores are divided by one number, which changes no answer."""
    vectors = standard.whitening.gain * standard.whitening.out_of(head.weights)
    scale = float(vectors.square().sum(dim=1).mean().sqrt())
    scale = scale if scale >= TINY else 1.0
    biases = head.biases - offset * standard.seen.to(torch.float64)
    return Generation(
        number=number,
        class_ids=statistics.class_ids,
        seen=statistics.seen,
        vectors=(vectors / scale).cpu().numpy(),
        biases=(biases / scale).cpu().numpy(),
        centre=standard.centre.cpu().numpy(),
        transform=statistics.transform,
        calibration=calibration,
    )
