"""The same demo events give the same generations, whatever bus they travel on and however many partitions there are.

`demo` told them on a SQLite file with one partition.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from stream_cgzsl.demo.story import Story


def told(url: str, directory: Path, partitions: int, memory: Any) -> list[str]:
    return Story(url, f"demo-{uuid.uuid4().hex[:8]}", directory, partitions).tell(memory).digests


def test_every_generation_has_a_digest_of_its_own(demo: Any) -> None:
    assert len(set(demo.ending.digests)) == 7


def test_on_sqlite_with_four_partitions(demo: Any, tmp_path: Path, memory: Any) -> None:
    assert told(f"sqlite:///{tmp_path}/demo.db", tmp_path, 4, memory) == demo.ending.digests


@pytest.mark.kafka
@pytest.mark.parametrize("partitions", [1, 4])
def test_on_kafka(demo: Any, kafka_url: str, tmp_path: Path, memory: Any, partitions: int) -> None:
    assert told(kafka_url, tmp_path, partitions, memory) == demo.ending.digests
