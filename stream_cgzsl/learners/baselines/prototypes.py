"""What systems with one vector a class publish: cosines, and a factor on those of seen classes."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.baselines.networks import to_array
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.serving.generation import Generation


def cosine_loss(x: Tensor, y: Tensor, prototypes: Tensor, scale: float) -> Tensor:
    """-E log softmax_c(scale cos(x, P_c))_y. x: [rows, features], y: [rows], prototypes: [classes, features]"""
    return F.cross_entropy(scale * (F.normalize(x) @ F.normalize(prototypes).T), y)


def prototypes_generation(number: int, roster: Roster, prototypes: Tensor, seen_factor: float = 1.0) -> Generation:
    """Cosines with [classes, features], those of seen classes times `seen_factor`."""
    seen = torch.from_numpy(roster.seen).to(prototypes.device)
    vectors = F.normalize(prototypes) * torch.where(seen, seen_factor, 1.0)[:, None]
    return Generation(
        number=number,
        class_ids=roster.class_ids,
        seen=roster.seen,
        vectors=to_array(vectors),
        biases=np.zeros(len(vectors), np.float32),
        centre=np.zeros(roster.space.features, np.float32),
        metric="cosine" if seen_factor == 1.0 else "affine",
    )
