"""The scoring formula in torch: for scorers with a GPU, and for learners, which score while they train."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.encoder import MOST
from stream_cgzsl.serving.generation import Generation, Ranking


def unit(x: Tensor) -> Tensor:
    """Rows at length 1; a row of zeros stays zero."""
    lengths: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / lengths.clamp_min(1e-12)


def scores(published: Tensor, vectors: Tensor, biases: Tensor | float, centre: Tensor) -> Tensor:
    """v/|v| . w + bias with v = x - centre, for x in the published feature space: [rows, classes], as `vectors` are."""
    return unit(published - centre).to(vectors.dtype) @ vectors.T + biases


class CudaClassifier:
    """As `Generation.classify`; the vectors stay on the GPU, and only the best classes come back.

    In full float32 (no TF32), but sums run in another order than on the CPU: last bits differ.
    """

    def __init__(self, generation: Generation, device: str) -> None:
        self._device = torch.device(device)
        self._vectors, self._biases, self._centre = (
            torch.from_numpy(np.array(array)).to(self._device)
            for array in (generation.scoring_vectors, generation.biases, generation.centre)
        )
        self._rooted = generation.transform == "sqrt"
        self._linear = generation.metric == "linear"
        self._layers: list[tuple[Tensor, Tensor, bool]] = []
        for layer in generation.encoder or ():
            weights, bias = (torch.from_numpy(np.array(array)).to(self._device) for array in layer[:2])
            self._layers.append((weights, bias, layer.activation == "relu"))

    def __call__(self, rows: Array, k: int) -> Ranking:
        with torch.inference_mode():
            x = torch.from_numpy(np.array(rows, np.float32)).to(self._device)  # [rows, features]
            if self._linear:
                found = self._linear_scores(x)
            else:
                x = unit(x.clamp_min(0).sqrt() if self._rooted else x)
                found = scores(x, self._vectors, self._biases, self._centre)  # [rows, classes]
            values, indices = torch.sort(found, dim=1, descending=True, stable=True)  # equal scores in class order
            k = min(k, found.shape[1])
            return Ranking(indices[:, :k].cpu().numpy(), values[:, :k].cpu().numpy())

    def _linear_scores(self, x: Tensor) -> Tensor:
        """As `LinearScoring`: [rows, features] -> [rows, classes]"""
        x = x.clamp(0 if self._rooted else -float(MOST), float(MOST))
        x = x.sqrt() if self._rooted else x
        for weights, bias, relu in self._layers:
            x = x @ weights.T + bias
            x = x.relu() if relu else x
        return x @ self._vectors.T + self._biases
