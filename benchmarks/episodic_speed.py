"""The cost of an `episodic` window relative to its arithmetic: one thread, 2048 features, 50 and 717 classes.

The arithmetic is one call for each factorisation and each matrix product that a window needs, on numbers of the same
size and type: nothing is gathered, normalised, differentiated or published.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

import numpy as np
import torch

from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.learners.kernel.episodes import BATCH, STEPS
from stream_cgzsl.learners.kernel.gaussian_replay import BATCHES
from stream_cgzsl.learners.numerics.triangular import inverse_lower, times_lower, times_lower_transposed
from stream_cgzsl.windows.window import Window

FEATURES = 2048
TARGET = 2.0
SIZES = ((40, 10, 85, 60), (645, 72, 102, 16))  # seen, unseen, attributes, rows per class


def make_window(seen: int, unseen: int, attributes: int, rows: int) -> Window:
    random = np.random.default_rng(0)
    vectors = {f"c{i:04}": random.random(attributes) for i in range(seen + unseen)}
    image = random.normal(size=(attributes, FEATURES)) / attributes**0.5
    features = {
        c: np.maximum(vectors[c] @ image + random.normal(size=(rows, FEATURES)), 0) for c in list(vectors)[:seen]
    }
    return Window.from_arrays(1, vectors, features)


class Bare:
    """The same arithmetic on random numbers."""

    def __init__(self, seen: int, unseen: int, attributes: int, rows: int) -> None:
        def numbers(*shape: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.randn(*shape, dtype=kind)

        self.rows = numbers(seen * rows, FEATURES, kind=torch.float64)
        self.sigma = self.rows.T @ self.rows / len(self.rows) + torch.eye(FEATURES, dtype=torch.float64)
        self.means = numbers(seen, FEATURES, kind=torch.float64)
        self.weights = numbers(seen + unseen, FEATURES, kind=torch.float64)
        self.noise = numbers(BATCHES * BATCH, FEATURES)
        self.directions = numbers(seen, FEATURES)
        kept = seen - round(seen / 4)
        self.u, self.w = numbers(kept, attributes), numbers(seen - kept, attributes)
        self.gram = self.u @ self.u.T + kept * torch.eye(kept)
        self.batch = numbers(BATCH, kept)
        self.unseen = numbers(unseen, seen, kind=torch.float64)

    def run(self) -> None:
        scatter = torch.zeros_like(self.sigma)
        for start in range(0, FEATURES, 256):  # the half on and above the diagonal
            stop = start + 256
            scatter[start:stop, start:].addmm_(self.rows[:, start:stop].T, self.rows[:, start:])
        root = inverse_lower(torch.linalg.cholesky(self.sigma))
        means = times_lower_transposed(self.means, root)
        times_lower(means, root)
        factor = torch.linalg.cholesky(self.sigma).to(torch.float32)
        noise = times_lower_transposed(self.noise, factor)
        noise @ self.directions.T
        self.directions @ self.directions.T
        means @ means.T
        for _ in range(STEPS):
            self._step()
        self.unseen @ means
        times_lower(self.weights, root)

    def _step(self) -> None:
        self.u @ self.u.T  # kernels
        across = self.u @ self.w.T
        factor = torch.linalg.cholesky(self.gram)
        regression = torch.cholesky_solve(across, factor)  # [kept, hidden]
        self.gram @ regression  # lengths
        scores = self.batch @ regression  # [batch, hidden]
        backward = self.batch.T @ scores
        right = torch.cholesky_solve(backward, factor)
        matrix = right @ regression.T
        matrix @ self.u  # derivatives of the kernels
        right @ self.w
        right.T @ self.u


def seconds(size: tuple[int, int, int, int], repeats: int) -> tuple[float, float]:
    """The shortest time of a window and of its arithmetic, taking turns because machines are noisy."""
    window, bare = make_window(*size), Bare(*size)
    space = Space(size[2], FEATURES, signed=False)
    whole_best = bare_best = float("inf")
    for _ in range(repeats):
        learner = create("episodic", space)
        started = perf_counter()
        learner.fit(window)
        whole_best = min(whole_best, perf_counter() - started)
        started = perf_counter()
        bare.run()
        bare_best = min(bare_best, perf_counter() - started)
    return whole_best, bare_best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail when a ratio is above {TARGET}")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    figures = []
    for size in SIZES:
        whole, bare = seconds(size, given.repeats)
        figures.append((size[0] + size[1], whole, bare, whole / bare))
    print(" | ".join(f"{c} classes: {w:.2f} s, bare {b:.2f} s, ratio {r:.2f}" for c, w, b, r in figures))
    return int(given.check and max(ratio for *_, ratio in figures) > TARGET)


if __name__ == "__main__":
    sys.exit(main())
