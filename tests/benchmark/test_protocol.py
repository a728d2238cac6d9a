from __future__ import annotations

import numpy as np
import pytest

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.protocol import ONLINE, Plan, windows
from stream_cgzsl.errors import UsageError
from stream_cgzsl.windows.window import Window


def data(seen: int, unseen: int) -> Dataset:
    """Two training rows and one test row a seen class, one test row an unseen class."""
    classes = seen + unseen
    labels = np.concatenate([np.repeat(np.arange(seen), 3), np.arange(seen, classes)])
    rows = np.arange(3 * seen)
    return Dataset(
        name="SMALL",
        class_ids=tuple(f"{'s' if i < seen else 'u'}{i:03}" for i in range(classes)),
        attributes=np.eye(classes, dtype=np.float32),
        features=np.ones((len(labels), 2), np.float32),
        labels=labels,
        train=rows[rows % 3 != 2],
        test_seen=rows[rows % 3 == 2],
        test_unseen=np.arange(3 * seen, len(labels)),
    )


def contents(window: Window) -> tuple[int, list[str], list[str]]:
    return window.number, [d.class_id for d in window.described], list(window.features)


def test_a_held_back_class_is_described_now_and_learned_next() -> None:
    found = [contents(window) for window in windows(data(6, 3), Plan(windows=2, seen=3, unseen=1))]
    assert found == [
        (1, ["s000", "s001", "s002", "u006"], ["s000", "s001"]),
        (2, ["s003", "s004", "s005", "u007"], ["s002", "s003", "s004"]),
    ]


def test_without_held_back_classes_it_is_the_dynamic_setting() -> None:
    found = [contents(window) for window in windows(data(4, 2), Plan(2, 2, 1, held_back=0))]
    assert found == [(1, ["s000", "s001", "u004"], ["s000", "s001"]), (2, ["s002", "s003", "u005"], ["s002", "s003"])]


def test_an_order_permutes_each_pool() -> None:
    plan = Plan(1, 6, 3, held_back=0)
    (plain,), (permuted,) = ([contents(window) for window in windows(data(20, 9), plan, order)] for order in (None, 4))
    assert plain[2] != permuted[2]
    assert all(class_id.startswith("s") for class_id in permuted[2]) and len(set(permuted[1])) == 9


@pytest.mark.parametrize(
    ("name", "new", "seen", "unseen"),
    [
        ("APY", [4, 5, 5], [4, 9, 14], [4, 7, 10]),
        ("AWA1", [7, 8, 8], [7, 15, 23], [3, 5, 7]),
        ("CUB", [6, 7, 7], [6, 13, 20], [3, 5, 7]),
        ("SUN", [42, 43, 43], [42, 85, 128], [5, 9, 13]),
    ],
)
def test_the_online_setting_is_the_papers(name: str, new: list[int], seen: list[int], unseen: list[int]) -> None:
    """New seen classes, all seen and all unseen classes in the first three tasks, as the paper's table of splits has them."""
    plan = ONLINE[name]
    described: set[str] = set()
    learned: set[str] = set()
    table = []
    for window in windows(data(plan.windows * plan.seen, plan.windows * plan.unseen), plan):
        described |= {d.class_id for d in window.described}
        learned |= set(window.features)
        table.append((len(window.features), len(learned), len(described - learned)))
    assert table[:3] == list(zip(new, seen, unseen, strict=True))


def test_too_few_classes_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="SMALL has 3 seen and 1 unseen classes"):
        list(windows(data(3, 1), Plan(2, 2, 1)))
