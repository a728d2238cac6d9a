"""The cost of a training iteration of `paper`, relative to its bare matrix products and optimiser steps. One thread.

    python benchmarks/paper_speed.py [--check]

Both take turns in one run and are compared by their medians; --check fails above 2.0 times the bare cost.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.base import Networks
from stream_cgzsl.learners.gan.batches import SeenFirst
from stream_cgzsl.learners.gan.classes import Classes
from stream_cgzsl.learners.gan.networks import Generator, Projector, TwoLayers
from stream_cgzsl.learners.gan.paper import PaperOptions, Training

TARGET = 2.0
ATTRIBUTES, FEATURES = 85, 2048
SIZES = ((40, 10), (645, 72))  # classes seen and unseen
OPTIONS = PaperOptions()


def classes_of(seen: int, unseen: int, rng: torch.Generator) -> Classes:
    attributes = losses.unit(torch.rand(seen + unseen, ATTRIBUTES, generator=rng))
    means = torch.rand(seen, FEATURES, generator=rng)
    positions, similarity, nearness = losses.neighbours(attributes, seen, OPTIONS.neighbours)
    places = SeenFirst(torch.arange(seen + unseen), seen)
    return Classes(places, attributes, means, losses.unit(means)[positions], similarity, nearness, signed=False)


def networks_of(rng: torch.Generator) -> Networks:
    sizes = ATTRIBUTES, OPTIONS.hidden, FEATURES
    return Generator(*sizes, "sigmoid", rng), Projector(*sizes, "relu", rng)


def iteration(classes: Classes, rng: torch.Generator) -> Callable[[], object]:
    training = Training(networks_of(rng), classes, OPTIONS)
    rows = losses.unit(torch.rand(100 * OPTIONS.batch, FEATURES, generator=rng))
    labels = torch.randint(classes.places.seen, (len(rows),), generator=rng)

    def run() -> object:
        batch = torch.randint(len(rows), (OPTIONS.batch,), generator=rng)
        unseen = classes.places.draw_unseen(OPTIONS.unseen_batch, rng)
        return training.step(rows[batch], labels[batch], unseen, rng)

    return run


def bare(classes: Classes, rng: torch.Generator) -> Callable[[], object]:
    """The products of both networks, forward and backward, those of the cosines of L_rcl, L_snl and L_pcl, and Adam."""
    networks = networks_of(rng)
    optimisers = []
    for network in networks:
        for p in network.parameters():
            p.grad = 1e-3 * torch.randn(p.shape, generator=rng)
        optimisers.append(torch.optim.Adam(network.parameters(), OPTIONS.learning_rate, weight_decay=1e-5, fused=True))
    n, seen, count = OPTIONS.batch, classes.places.seen, len(classes.attributes)
    x = torch.rand(n + OPTIONS.unseen_batch, FEATURES, generator=rng)
    s = torch.rand(count, FEATURES, generator=rng)
    made = len(x) + count  # a generated feature of each class as well, for L_sal
    inputs = (torch.rand(made, 2 * ATTRIBUTES, generator=rng), classes.attributes)
    outputs = (torch.rand(made, FEATURES, generator=rng), torch.rand(count, FEATURES, generator=rng))

    def through(network: TwoLayers, a: Tensor, dy: Tensor) -> None:
        h = a @ network.w1.T
        h @ network.w2.T
        dy.T @ h
        (dy @ network.w2).T @ a

    @torch.no_grad()
    def run() -> None:
        for network, a, dy in zip(networks, inputs, outputs, strict=True):
            through(network, a, dy)
        for rows, projections in ((x[:n], s[:seen]), (x[n:], s)):  # L_rcl and L_snl, with their gradient of S
            cosines = rows @ projections.T
            cosines.T @ rows
        cosines = x[:n] @ s[:seen].T  # L_pcl, with its gradient of x'
        cosines @ s[:seen]
        for optimiser in optimisers:
            optimiser.step()

    return run


def medians(runs: tuple[Callable[[], object], ...], rounds: int) -> list[float]:
    """The median seconds of each, taking turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds + 3):
        for run, taken in zip(runs, seconds, strict=True):
            started = perf_counter()
            run()
            if turn >= 3:  # the first few are warm-up
                taken.append(perf_counter() - started)
    return [statistics.median(taken) for taken in seconds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help=f"fail above {TARGET} times the bare cost")
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    figures = []
    worst = 0.0
    for seen, unseen in SIZES:
        rng = torch.Generator().manual_seed(0)
        classes = classes_of(seen, unseen, rng)
        whole, products = medians((iteration(classes, rng), bare(classes, rng)), arguments.rounds)
        worst = max(worst, whole / products)
        print(f"{seen} + {unseen} classes: iteration {1e3 * whole:.1f} ms, bare {1e3 * products:.1f} ms")
        figures.append(f"{seen}+{unseen} {whole / products:.2f}")
    print(f"paper iteration / bare products and optimiser: {', '.join(figures)} (at most {TARGET})")
    return int(arguments.check and worst > TARGET)


if __name__ == "__main__":
    sys.exit(main())
