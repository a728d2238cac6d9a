"""Where the matrix product of a scorer is computed: on the processor, or on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.errors import UsageError
from stream_cgzsl.generation import Generation, Ranking

Array = npt.NDArray[Any]

Classify = Callable[[Array, int], Ranking]
"""(rows [rows, features], k) -> the k best classes of each row"""


def classifier(generation: Generation, device: str = "cpu") -> Classify:
    """As `generation.classify`, on `device`. Everything that takes long is done here, not at the first answer."""
    if device == "cpu":
        generation.prepare()
        return generation.classify
    return _CudaClassifier(generation, device)


def serving_device(wanted: str) -> str:
    """`cpu`, or the GPU asked for. A scorer looks for one only when told to: most have none, and torch takes seconds."""
    if wanted in ("auto", "cpu"):
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        raise UsageError(f"--device {wanted}: there is no usable GPU; say cpu")
    return wanted


class _CudaClassifier:
    """The generation's vectors stay on the GPU; samples go there and only the best classes come back.

    In full float32 (no TF32), but sums run in another order than on the processor: last bits differ.
    """

    def __init__(self, generation: Generation, device: str) -> None:
        import torch

        self._torch = torch
        vectors = np.array(generation.vectors)
        if generation.metric == "cosine":
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        self._device = torch.device(device)
        self._columns = torch.from_numpy(vectors).to(self._device).T.contiguous()  # [features, classes]
        self._biases = torch.from_numpy(np.array(generation.biases)).to(self._device)
        self._centre = torch.from_numpy(np.array(generation.centre)).to(self._device)
        self._rooted = generation.transform == "sqrt"

    def __call__(self, rows: Array, k: int) -> Ranking:
        torch = self._torch
        with torch.inference_mode():
            x = torch.from_numpy(np.array(rows, np.float32)).to(self._device)  # [rows, features]
            x = x.clamp_min(0).sqrt() if self._rooted else x
            x = torch.nn.functional.normalize(x, dim=1)
            x = torch.nn.functional.normalize(x - self._centre, dim=1)
            scores = x @ self._columns + self._biases  # [rows, classes]
            values, indices = torch.sort(scores, dim=1, descending=True, stable=True)  # equal scores in class order
            k = min(k, scores.shape[1])
            return Ranking(indices[:, :k].cpu().numpy(), values[:, :k].cpu().numpy())
