"""What is specific to the Kafka bus."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from patience import PATIENCE_SECONDS, until

from stream_cgzsl.bus import Record, Subscription, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.kafka.bus import KafkaBus
from stream_cgzsl.errors import BusUnavailable, Fenced, Refused, TopicMissing
from stream_cgzsl.schemas.message import Message


@pytest.fixture
def bus(kafka_url: str) -> Iterator[KafkaBus]:
    separator = "&" if "?" in kafka_url else "?"
    with connect(f"{kafka_url}{separator}patience_ms=4000") as connected:
        assert isinstance(connected, KafkaBus)
        yield connected


@pytest.fixture
def admin(bus: KafkaBus) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(**bus.settings.admin())
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    return f"kafka-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(bus: KafkaBus, name: str) -> str:
    bus.create([TopicSpec(name)])
    return name


def read(bus: KafkaBus, topic: str) -> list[bytes | None]:
    tp, end = TopicPartition(topic, 0), bus.end_offsets(topic)[0]
    found: list[bytes | None] = []
    with bus.reader({tp: 0}) as reader:
        while reader.position(tp) < end:
            found += [record.value for record in reader.poll(1.0)]
    return found


# ---- topics


def test_topics_are_created_with_the_settings_of_their_cleanup_policy(
    bus: KafkaBus, admin: KafkaAdminClient, name: str
) -> None:
    bus.create(
        [
            TopicSpec(f"{name}.keep"),
            TopicSpec(f"{name}.compact", cleanup="compact", settings={"segment.bytes": "1048576"}),
            TopicSpec(f"{name}.expire", cleanup="expire", settings={"retention.ms": "1000"}),
        ]
    )
    resources = [ConfigResource(ConfigResourceType.TOPIC, f"{name}.{kind}") for kind in ("keep", "compact", "expire")]
    described = admin.describe_configs(resources, config_filter="modified")["topic"]
    found = {topic: {key: entry["value"] for key, entry in entries.items()} for topic, entries in described.items()}
    forever = {"retention.ms": "-1", "retention.bytes": "-1"}
    wanted = {
        "keep": forever,
        "compact": {"cleanup.policy": "compact", "segment.bytes": "1048576"},
        "expire": {"retention.ms": "1000"},
    }
    for kind, settings in wanted.items():
        assert settings.items() <= found[f"{name}.{kind}"].items()
        assert int(found[f"{name}.{kind}"]["max.message.bytes"]) > 8_000_000


def test_a_topic_with_compact_and_delete_is_reported_as_expiring(bus: KafkaBus, name: str) -> None:
    bus.create([TopicSpec(name, cleanup="compact", settings={"cleanup.policy": "compact,delete"})])
    assert bus.topics()[name].cleanup == "expire"


def test_an_invalid_topic_setting_is_refused_by_name(bus: KafkaBus, name: str) -> None:
    with pytest.raises(Refused, match=rf"(?s){name}.*cleanup\.policy"):
        bus.create([TopicSpec(name, settings={"cleanup.policy": "sometimes"})])


def test_a_timestamp_in_the_far_future_is_accepted(bus: KafkaBus, topic: str) -> None:
    with bus.writer() as writer:
        writer.send(topic, Message(b"k", b"v", (), 4_102_444_800_000))
        writer.flush()
    assert bus.offsets_at(topic, 4_102_444_800_000) == {0: 0}


# ---- fencing


def test_a_newer_publisher_aborts_the_open_transaction_of_the_older(bus: KafkaBus, topic: str) -> None:
    older = bus.publisher(topic)
    older.begin()
    older.send(topic, Message(None, b"old"))
    older.flush()
    with bus.publisher(topic) as newer:
        newer.begin()
        newer.send(topic, Message(None, b"new"))
        newer.commit()
        with pytest.raises(Fenced):
            older.commit()
        older.close()
    assert read(bus, topic) == [b"new"]


def test_a_fenced_publisher_that_keeps_writing_does_not_fence_the_newer(bus: KafkaBus, topic: str) -> None:
    older = bus.publisher(topic)
    older.begin()
    older.send(topic, Message(None, b"old"))
    older.flush()
    with bus.publisher(topic) as newer:
        older.send(topic, Message(None, b"old too"))
        with pytest.raises(Fenced):
            older.flush()
        time.sleep(0.5)  # the older client may try to get a new epoch in the background
        newer.begin()
        newer.send(topic, Message(None, b"new"))
        newer.commit()
        older.close()
    assert read(bus, topic) == [b"new"]


# ---- groups


class Member(threading.Thread):
    """Polls continuously in its own thread, on its own bus, as a worker would."""

    def __init__(self, url: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._url, self._topic = url, topic
        self._ended = threading.Event()
        self.owned: frozenset[TopicPartition] = frozenset()
        self.read: list[int] = []

    def run(self) -> None:
        with connect(self._url) as bus, bus.subscribe(self._topic, self._topic) as subscription:
            while not self._ended.is_set():
                self.read += [int(record.value or b"") for record in subscription.poll(0.2)]
                self.owned = subscription.assignment()

    def __enter__(self) -> Member:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join(PATIENCE_SECONDS)


def test_members_share_the_partitions_and_each_record_is_read_once(bus: KafkaBus, kafka_url: str, name: str) -> None:
    bus.create([TopicSpec(name, 4)])
    with Member(kafka_url, name) as first, Member(kafka_url, name) as second:
        until(lambda: len(first.owned) == len(second.owned) == 2)
        with bus.writer() as writer:
            for i in range(40):
                writer.send(name, Message(None, b"%d" % i), i % 4)
        until(lambda: len(first.read) + len(second.read) >= 40)
        assert sorted(first.read + second.read) == list(range(40))
        assert len(first.read) == len(second.read) == 20


def test_offsets_of_lost_partitions_are_not_committed(bus: KafkaBus, kafka_url: str, name: str) -> None:
    bus.create([TopicSpec(name, 2)])
    both = {TopicPartition(name, 0): 5, TopicPartition(name, 1): 5}
    with connect(kafka_url) as own, own.subscribe(name, name) as first:
        until(lambda: first.poll(0.2) == [] and first.assignment() == set(both))
        with Member(kafka_url, name) as second:
            until(lambda: first.poll(0.2) == [] and len(first.assignment()) == len(second.owned) == 1)
            first.commit(both)
            (kept,) = first.assignment()
            assert bus.committed(name, name) == {kept.partition: 5}


def test_the_lag_of_a_partition_lost_and_regained_is_not_counted_twice(
    bus: KafkaBus, kafka_url: str, name: str
) -> None:
    bus.create([TopicSpec(name, 2)])
    both = {TopicPartition(name, 0), TopicPartition(name, 1)}

    def write(partition: int, count: int) -> None:
        with bus.writer() as writer:
            for _ in range(count):
                writer.send(name, Message(None, b"x"), partition)

    def take(member: Subscription, count: int) -> None:
        read: list[Record] = []
        while len(read) < count:
            read += member.poll(0.2)

    with connect(kafka_url) as own, own.subscribe(name, name) as first:
        write(0, 3)
        write(1, 3)
        take(first, 6)
        first.commit(dict.fromkeys(both, 3))
        with connect(kafka_url) as other, other.subscribe(name, name) as second:
            until(lambda: not first.poll(0.2) and not second.poll(0.2) and len(second.assignment()) == 1)
            (moved,) = second.assignment()
            write(moved.partition, 2)
            take(second, 2)
            second.commit({moved: 5})
            assert first.lag() == 0
        until(lambda: not first.poll(0.2) and first.assignment() == both)
        first.poll(1.0)  # fetches, and so learns where the partitions end
        assert first.lag() == 0


def test_an_invalid_session_timeout_is_refused(kafka_url: str, topic: str) -> None:
    separator = "&" if "?" in kafka_url else "?"
    with (
        connect(f"{kafka_url}{separator}session_timeout_ms=9999999") as bus,
        bus.subscribe(topic, topic) as member,
        pytest.raises(Refused, match="InvalidSessionTimeout"),
    ):
        member.poll(10.0)


# ---- deleted topics


def test_a_writer_reports_that_its_topic_was_deleted(bus: KafkaBus, admin: KafkaAdminClient, topic: str) -> None:
    with bus.writer() as writer:
        writer.send(topic, Message(b"k", b"v"))
        writer.flush()
        admin.delete_topics([topic])
        writer.send(topic, Message(b"k", b"w"))
        with pytest.raises(TopicMissing, match=topic):
            writer.flush()


def test_a_reader_reports_that_its_topic_was_deleted(bus: KafkaBus, admin: KafkaAdminClient, topic: str) -> None:
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        reader.poll(0.1)
        admin.delete_topics([topic])
        deadline = time.monotonic() + PATIENCE_SECONDS
        with pytest.raises(TopicMissing, match=topic):
            while time.monotonic() < deadline:
                reader.poll(0.5)


# ---- no broker


def test_an_address_where_nothing_listens_is_reported_with_possible_causes() -> None:
    with pytest.raises(BusUnavailable, match=r"127\.0\.0\.1:1 within 1 s .*ECONNREFUSED.*may not be running"):
        connect("kafka://127.0.0.1:1?patience_ms=1000")


def test_hosts_that_accept_connections_and_never_answer_are_passed_over(kafka_url: str) -> None:
    """As a broker whose process is stopped."""
    with ExitStack() as stack:
        hung = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        hosts = [f"127.0.0.1:{each.getsockname()[1]}" for each in hung]
        for _ in range(4):
            connect(f"kafka://{','.join(hosts)},{kafka_url.removeprefix('kafka://')}").close()


@pytest.mark.slow
def test_the_client_library_logs_nothing_by_default() -> None:
    script = (
        "import logging; logging.basicConfig(level=logging.DEBUG)\n"
        "from stream_cgzsl.bus import connect\n"
        "try: connect('kafka://127.0.0.1:1?patience_ms=1000')\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("BusUnavailable\n", "")
