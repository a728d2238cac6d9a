"""What is too weak about the settings of a topic."""

from __future__ import annotations

import pytest

from stream_cgzsl.bus import TopicSpec
from stream_cgzsl.bus.kafka.topics import topic_settings, weaknesses


@pytest.mark.parametrize(
    ("copies", "brokers", "needed", "found"),
    [
        (3, 3, 2, []),
        (3, 5, 2, []),
        (1, 1, 1, []),
        (2, 2, 1, ["min.insync.replicas=1: what was acknowledged may be on one broker only. Raise its replication"]),
        (2, 2, 2, ["nobody can write while one broker is down"]),
        (1, 3, 1, ["replication factor 1 on a cluster of 3 brokers: if one is lost"]),
        (2, 3, 2, ["replication factor 2 on a cluster of 3 brokers: if 2 are lost", "nobody can write"]),
        (3, 3, 1, ["Set min.insync.replicas=2"]),
        (3, 3, 3, ["nobody can write while one broker is down"]),
    ],
)
def test_copies(copies: int, brokers: int, needed: int, found: list[str]) -> None:
    settings = {"cleanup.policy": "delete", "min.insync.replicas": str(needed), "min.compaction.lag.ms": "0"}
    told = weaknesses("topic 't'", copies, brokers, settings)
    assert len(told) == len(found)
    assert all(part in text for part, text in zip(found, told, strict=True))


@pytest.mark.parametrize(("lag", "count"), [("0", 1), ("600000", 0)])
def test_a_compacted_topic_keeps_what_a_slow_reader_reads(lag: str, count: int) -> None:
    settings = {"cleanup.policy": "compact", "min.insync.replicas": "2", "min.compaction.lag.ms": lag}
    told = weaknesses("topic 't'", 3, 3, settings)
    assert ["min.compaction.lag.ms=600000" in text for text in told] == [True] * count


@pytest.mark.parametrize("cleanup", ["keep", "expire", "compact"])
def test_what_we_create_has_no_weakness(cleanup: str) -> None:
    defaults = {"cleanup.policy": "delete", "min.insync.replicas": "1", "min.compaction.lag.ms": "0"}
    assert weaknesses("topic 't'", 3, 3, {**defaults, **topic_settings(TopicSpec("t", 1, cleanup), 3)}) == []
