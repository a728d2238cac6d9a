"""The order in which a data set is streamed: which classes a window describes, and which it brings features of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.errors import UsageError
from stream_cgzsl.windows.window import Window


@dataclass(frozen=True)
class Plan:
    """How many windows, and how many classes of either pool each of them brings.

    Of a window's classes from the seen pool, `held_back` are only described: they are unseen for now, and their
    features come with the next window. 1 is the online setting, 0 the dynamic one.
    """

    windows: int
    seen: int  # classes from the seen pool a window, held back ones among them
    unseen: int  # classes from the unseen pool a window
    held_back: int = 1


ONLINE = {
    "AWA1": Plan(5, 8, 2),
    "AWA2": Plan(5, 8, 2),
    "APY": Plan(4, 5, 3),
    "CUB": Plan(20, 7, 2),
    "SUN": Plan(15, 43, 4),
    "BANKING77": Plan(6, 10, 2),
}
"""The online setting: for CUB, for example, 6 new seen and 3 new unseen classes a window, one of which is seen in the next."""


def windows(data: Dataset, plan: Plan, order: int | None = None) -> Iterator[Window]:
    """Windows 1 to n, made one at a time. `order` is a seed that permutes each pool; None takes the file's order."""
    seen, unseen = list(data.seen_pool), list(data.unseen_pool)
    if len(seen) < plan.windows * plan.seen or len(unseen) < plan.windows * plan.unseen:
        raise UsageError(f"{data.name} has {len(seen)} seen and {len(unseen)} unseen classes: too few for {plan}")
    if order is not None:
        shuffle = np.random.default_rng(order)
        seen = [seen[i] for i in shuffle.permutation(len(seen))]
        unseen = [unseen[i] for i in shuffle.permutation(len(unseen))]
    waiting: list[str] = []
    for number in range(1, plan.windows + 1):
        fresh = seen[(number - 1) * plan.seen : number * plan.seen]
        described = fresh + unseen[(number - 1) * plan.unseen : number * plan.unseen]
        learned = waiting + fresh[: plan.seen - plan.held_back]
        waiting = fresh[plan.seen - plan.held_back :]
        yield Window.from_arrays(number, {c: data.vector(c) for c in described}, {c: data.training(c) for c in learned})
