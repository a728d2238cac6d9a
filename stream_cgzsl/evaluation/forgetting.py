"""Forgetting: how much worse learned classes are than they once were."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

Shares = Mapping[str, float]
"""An accuracy for each class id."""


def forgetting(best: Shares, learned: Set[str], now: Shares) -> float | None:
    """The mean of best minus now over the learned classes that have both; one that is better than ever counts as 0.

    `best` comes from the evaluation before: a class counts from the second evaluation on in which it is learned. None
    while there is no such class.
    """
    losses = [max(0.0, best[class_id] - now[class_id]) for class_id in sorted(best.keys() & now.keys() & learned)]
    return float(np.mean(losses)) if losses else None


def best_since_learned(best: Shares, learned: Set[str], now: Shares) -> dict[str, float]:
    """The best after this evaluation, by class id in order.

    A class that is learned no longer (retired, or rolled back to its description) is left out: should it be learned
    again, it starts afresh.
    """
    known = sorted((best.keys() | now.keys()) & learned)
    return {class_id: max(best.get(class_id, 0.0), now.get(class_id, 0.0)) for class_id in known}
