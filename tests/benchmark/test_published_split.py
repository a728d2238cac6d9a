"""The static setting with the rows of the published loader."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pytest

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.benchmark.protocols import as_used, plan_for
from stream_cgzsl.cli.data_flags import add_data, data_from, data_words
from stream_cgzsl.errors import UsageError

DATA = "synthetic:classes=12,attributes=4,features=5,rows=8,test=2"


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_data(parser)
    return parser.parse_args([DATA, *words])


def test_rows_are_divided_as_by_scikit_learn() -> None:
    data = load(DATA)
    ten = replace(data, labels=data.labels[:10], features=data.features[:10]).split_as_published()
    assert (ten.train.tolist(), ten.test_seen.tolist()) == ([5, 0, 7, 2, 9, 4, 3, 6], [8, 1])
    eleven = replace(data, labels=data.labels[:11], features=data.features[:11]).split_as_published()
    assert (len(eleven.train), len(eleven.test_seen)) == (8, 3)  # the larger part of a fifth


def test_every_class_is_learned_and_every_row_is_used_once() -> None:
    data = data_from(asked("--setting", "static", "--split", "published"))
    used = as_used(data, plan_for(data, "static", tasks=3))
    assert np.array_equal(np.sort(np.concatenate([used.train, used.test_seen])), np.arange(len(data.labels)))
    assert (set(used.seen_pool), used.unseen_pool) == (set(data.class_ids), ())


def test_the_split_is_part_of_the_command_and_of_the_datas_identity() -> None:
    published = asked("--setting", "static", "--split", "published")
    assert data_words(published) == (DATA, "--split", "published")
    assert data_words(asked("--split", "official")) == (DATA,)
    assert data_from(published).digest != data_from(asked("--setting", "static")).digest


@pytest.mark.parametrize("words", [(), ("--setting", "online"), ("--setting", "trickle")])
def test_it_is_of_the_static_setting_only(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="--split published is of the static setting"):
        data_from(asked(*words, "--split", "published"))
