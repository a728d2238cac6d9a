"""A cluster of three of which one broker hangs: its process is stopped, its connections stay open."""

from __future__ import annotations

import uuid

import pytest
from own_cluster import OwnCluster
from patience import until

from stream_cgzsl.bus import TopicPartition, TopicSpec, connect
from stream_cgzsl.cli import main
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas.message import Message


@pytest.fixture
def topic(cluster: OwnCluster) -> str:
    name = f"cluster-{uuid.uuid4().hex[:12]}"
    with connect(cluster.url) as bus:
        bus.create([TopicSpec(name)])
    return name


def test_a_commit_whose_coordinator_hangs_has_an_unknown_outcome(cluster: OwnCluster, topic: str) -> None:
    """A new publisher of the same name finds out: the record is there once, or not at all."""
    with connect(f"{cluster.url}?patience_ms=9000") as bus, bus.publisher(topic) as publisher:
        publisher.begin()
        publisher.send(topic, Message(None, b"undecided"))
        publisher.flush()
        with cluster.paused(cluster.transaction_coordinator(topic)), pytest.raises(BusUnavailable) as raised:
            publisher.commit(topic, {TopicPartition(topic, 0): 1})
    assert "may or may not become visible" in str(raised.value)
    with connect(cluster.url) as bus, bus.publisher(topic) as newer:
        newer.begin()
        newer.send(topic, Message(None, b"after"))
        newer.commit()
        with bus.reader({TopicPartition(topic, 0): 0}) as reader:
            found: list[bytes | None] = []
            until(lambda: found.extend(r.value for r in reader.poll(1.0)) or b"after" in found)  # type: ignore[func-returns-value]
    assert found in ([b"undecided", b"after"], [b"after"])


def test_topics_have_three_copies_unless_told_otherwise_and_a_check_tells_of_weak_ones(
    cluster: OwnCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = f"copies-{uuid.uuid4().hex[:12]}"
    common = ("--bus", cluster.url, "--prefix", prefix)
    assert main(["topics", "create", *common, "--replication", "1", "--topics", f"state={prefix}.one"]) == 0
    assert capsys.readouterr().out.count("warning") == 11
    assert main(["topics", "create", *common]) == 0
    printed = capsys.readouterr().out
    assert f"created {prefix}.state\n" in printed
    assert f"{prefix}.state'" not in printed, "what is created without flags needs no warning"
    assert f"topic '{prefix}.windows' has replication factor 1 on a cluster of 3 brokers" in printed
