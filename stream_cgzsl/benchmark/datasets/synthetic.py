"""Synthetic classes as a data set of any size: `synthetic:classes=40,features=64,seed=7`."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from stream_cgzsl.benchmark.datasets.dataset import Dataset
from stream_cgzsl.benchmark.synthetic_world import TEST, TRAIN, World
from stream_cgzsl.errors import UsageError

PREFIX = "synthetic"


@dataclass(frozen=True)
class Synthetic:
    """The last `unseen` of the classes only have test rows. `rows` (for training) and `test` are per class."""

    classes: int = 40
    unseen: int = 10
    attributes: int = 32
    features: int = 64
    rows: int = 40
    test: int = 10
    seed: int = 7


def is_synthetic(text: str) -> bool:
    return text == PREFIX or text.startswith(f"{PREFIX}:")


def parse_synthetic(text: str) -> Synthetic:
    """`synthetic`, or `synthetic:name=number,...` with the names of `Synthetic`. Raises `UsageError`."""
    names = [field.name for field in fields(Synthetic)]
    values: dict[str, int] = {}
    for item in filter(None, text.removeprefix(PREFIX).removeprefix(":").split(",")):
        name, _, number = item.partition("=")
        if name not in names:
            raise UsageError(f"{text}: found {item!r}; expected name=number, where name is one of {', '.join(names)}")
        if not number.isdecimal():
            raise UsageError(f"{text}: {name}: found {number!r}; expected a whole number")
        values[name] = int(number)
    if "classes" in values and "unseen" not in values:
        values["unseen"] = values["classes"] // 4
    made = Synthetic(**values)
    for name, least in (("classes", 1), ("attributes", 1), ("features", 1), ("rows", 1)):
        if getattr(made, name) < least:
            raise UsageError(f"{text}: {name}: found {getattr(made, name)}; expected at least {least}")
    if made.unseen >= made.classes:
        raise UsageError(f"{text}: unseen: found {made.unseen}; expected less than the {made.classes} classes")
    if made.unseen and not made.test:
        raise UsageError(f"{text}: test: found 0; expected at least 1, because unseen classes only have test rows")
    return made


def load_synthetic(text: str) -> Dataset:
    """The data set that `text` specifies; the same numbers for the same values, in any order."""
    made = parse_synthetic(text)
    world = World(made.classes, made.attributes, made.features, made.seed)
    seen = made.classes - made.unseen
    blocks = [world.draw(c, made.rows, TRAIN) for c in world.classes[:seen]]
    blocks += [world.draw(c, made.test, TEST) for c in world.classes]
    labels = np.concatenate(
        [np.repeat(np.arange(seen), made.rows), np.repeat(np.arange(made.classes), made.test)]
    ).astype(np.int64)
    rows = np.arange(len(labels))
    testing = rows >= seen * made.rows
    return Dataset(
        name=PREFIX + ":" + ",".join(f"{field.name}={getattr(made, field.name)}" for field in fields(made)),
        class_ids=world.classes,
        attributes=world.attributes,
        features=np.concatenate(blocks),
        labels=labels,
        train=rows[~testing],
        test_seen=rows[testing & (labels < seen)],
        test_unseen=rows[testing & (labels >= seen)],
        extractor="made up",
    )
