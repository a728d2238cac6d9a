"""The same demo events give the same generations on both buses and with any number of partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_all_generations_have_different_digests(demo: Any) -> None:
    assert len(set(demo.result.digests)) == len(demo.result.steps) == 8


def test_with_one_and_with_four_partitions_on_sqlite(on_sqlite: dict[int, Any]) -> None:
    assert on_sqlite[4].result.digests == on_sqlite[1].result.digests


@pytest.mark.kafka
def test_with_one_and_with_four_partitions_on_kafka(
    demo: Any, kafka_url: str, run_demos: Callable[..., dict[int, Any]]
) -> None:
    on_kafka = run_demos(lambda _: kafka_url)
    expected = demo.result.digests
    assert {partitions: finished.result.digests for partitions, finished in on_kafka.items()} == {
        1: expected,
        4: expected,
    }
