"""The synthetic data set: it has the requested sizes, and the same numbers for the same values."""

from __future__ import annotations

import numpy as np
import pytest

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.synthetic_world import World
from stream_cgzsl.errors import UsageError


def test_it_has_the_sizes_asked_for() -> None:
    data = load("synthetic:classes=12,unseen=3,attributes=5,features=7,rows=4,test=2,seed=1")
    assert (data.attributes.shape, data.features.shape) == ((12, 5), (9 * 4 + 12 * 2, 7))
    assert (data.seen_pool, data.unseen_pool) == (data.class_ids[:9], data.class_ids[9:])
    assert (len(data.train), len(data.test_seen), len(data.test_unseen)) == (36, 18, 6)
    assert data.name == "synthetic:classes=12,unseen=3,attributes=5,features=7,rows=4,test=2,seed=1"


def test_its_rows_are_the_worlds() -> None:
    data = load("synthetic:classes=12,features=7,seed=1")
    world = World(12, 32, 7, seed=1)
    first = data.class_ids[0]
    assert data.training(first).tobytes() == world.draw(first, 40, 1).tobytes()
    assert data.test(first).tobytes() == world.draw(first, 10, 2).tobytes()
    assert np.array_equal(data.vector(first), world.attribute(first))


def test_the_same_words_in_any_order_give_the_same_data() -> None:
    one, other, another = (
        load(f"synthetic:{text}") for text in ("classes=8,seed=3", "seed=3,classes=8", "classes=8,seed=4")
    )
    assert one.digest == other.digest != another.digest
    assert one.name == other.name


def test_by_default_a_quarter_is_unseen() -> None:
    assert [len(load(f"synthetic{text}").unseen_pool) for text in ("", ":classes=20", ":classes=20,unseen=0")] == [
        10,
        5,
        0,
    ]


def test_there_can_be_more_classes_than_kinds_of_animals() -> None:
    assert len(set(load("synthetic:classes=1300,features=4,rows=1,test=1").class_ids)) == 1300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "colour=3",
            "found 'colour=3'; expected name=number, where name is one of classes, unseen, attributes, features, rows,",
        ),
        ("classes", "classes: found ''; expected a whole number"),
        ("classes=-3", "classes: found '-3'; expected a whole number"),
        ("classes=0", "classes: found 0; expected at least 1"),
        ("features=0", "features: found 0; expected at least 1"),
        ("rows=0", "rows: found 0; expected at least 1"),
        ("classes=4,unseen=4", "unseen: found 4; expected less than the 4 classes"),
        ("test=0", "test: found 0; expected at least 1, because unseen classes only have test rows"),
    ],
)
def test_wrong_values_are_reported(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(f"synthetic:{text}")
    assert str(caught.value).startswith(f"synthetic:{text}: {said}")
