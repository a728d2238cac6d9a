"""The same demo events give the same generations, whatever bus they travel on and however many partitions there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_every_generation_has_a_digest_of_its_own(demo: Any) -> None:
    assert len(set(demo.ending.digests)) == len(demo.ending.scenes) == 7


def test_with_one_and_with_four_partitions_on_sqlite(on_sqlite: dict[int, Any]) -> None:
    assert on_sqlite[4].ending.digests == on_sqlite[1].ending.digests


@pytest.mark.kafka
def test_with_one_and_with_four_partitions_on_kafka(
    demo: Any, kafka_url: str, tell_with: Callable[..., dict[int, Any]]
) -> None:
    on_kafka = tell_with(lambda _: kafka_url)
    expected = demo.ending.digests
    assert {partitions: told.ending.digests for partitions, told in on_kafka.items()} == {1: expected, 4: expected}
