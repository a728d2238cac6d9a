"""Three brokers of which a test may kill or pause one: every record has three copies, and a write needs two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from patience import until

from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.demo import cluster
from stream_cgzsl.demo.broker import Broker


@dataclass
class OwnCluster:
    """A test that ends a broker, or pauses it, leaves all of them running: `with paused(broker)`, `restart`."""

    brokers: dict[int, Broker]

    @property
    def url(self) -> str:
        return cluster.url(self.brokers)

    def leader(self, topic: str, partition: int = 0) -> Broker:
        """The broker that others write this partition to."""
        with self._admin() as admin:
            (described,) = admin.describe_topics([topic])
            found = {each["partition_index"]: each["leader_id"] for each in described["partitions"]}
        return self.brokers[found[partition]]

    def transaction_coordinator(self, publisher: str) -> Broker:
        """The broker that decides the transactions of this publisher, which must have had one."""
        return self._coordinator("__transaction_state", publisher)

    def group_coordinator(self, group: str) -> Broker:
        """The broker that stores the offsets of this group, which must have been used."""
        return self._coordinator("__consumer_offsets", group)

    def _coordinator(self, topic: str, name: str) -> Broker:
        with self._admin() as admin:
            (described,) = admin.describe_topics([topic])
        return self.leader(topic, _java_hash(name) % len(described["partitions"]))

    def wait_until_whole(self, topic: str) -> None:
        """Until every copy of the topic is up to date again."""

        def whole() -> bool:
            with self._admin() as admin:
                (described,) = admin.describe_topics([topic])
            return all(len(p["isr_nodes"]) == len(p["replica_nodes"]) for p in described["partitions"])

        until(whole, "a full set of copies")

    @contextmanager
    def paused(self, broker: Broker) -> Iterator[None]:
        broker.pause()
        try:
            yield
        finally:
            broker.resume()

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        admin = KafkaAdminClient(**KafkaSettings.parse(self.url).admin())
        try:
            yield admin
        finally:
            admin.close()


def _java_hash(text: str) -> int:
    """How Kafka finds the partition of a name."""
    number = 0
    for character in text:
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    return number & 0x7FFFFFFF


@contextmanager
def running(directory: Path) -> Iterator[OwnCluster]:
    started = cluster.start(directory, properties={"group.min.session.timeout.ms": "1000"})
    try:
        yield OwnCluster(started)
    finally:
        cluster.kill(started)
