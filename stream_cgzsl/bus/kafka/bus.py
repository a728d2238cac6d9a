"""Apache Kafka as the bus: `kafka://host:port`. See settings.py for what a URL may contain.

The client reconnects by itself and waits while a broker restarts. A call raises `BusUnavailable` after 8 seconds if
there was never a connection, and after 30 seconds (`patience_ms`) if there was one.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import kafka
import kafka.errors as errors
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.admin import ConfigResource, ConfigResourceType

from stream_cgzsl.bus.interface import Bus, Lock, OffsetWriter, Publisher, Reader, Subscription, Writer
from stream_cgzsl.bus.kafka.clients import open_client
from stream_cgzsl.bus.kafka.errors import topic_missing, translate, translating
from stream_cgzsl.bus.kafka.lock import KafkaLock
from stream_cgzsl.bus.kafka.offset_writer import KafkaOffsetWriter
from stream_cgzsl.bus.kafka.reading import KafkaReader, KafkaSubscription
from stream_cgzsl.bus.kafka.rights import find_denied
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.kafka.topics import (
    CLEANUP_SETTINGS,
    COPIES,
    SAFETY_SETTINGS,
    cleanup_of,
    topic_settings,
    weaknesses,
)
from stream_cgzsl.bus.kafka.writing import KafkaPublisher, KafkaWriter
from stream_cgzsl.bus.types import Right, TopicPartition, TopicSpec
from stream_cgzsl.errors import BusUnavailable, Refused

_RETRY_SECONDS = 0.2
_NO_ID = str(uuid.UUID(int=0))
"""Of topics made before Kafka 2.8."""


class KafkaBus(Bus):
    """A Kafka cluster. Connects at once, so that a wrong address is reported at once."""

    client = f"kafka-python {kafka.__version__}"

    def __init__(self, url: str) -> None:
        self.settings = KafkaSettings.parse(url)
        self.url = self.settings.url
        self._admin = open_client(KafkaAdminClient, self.settings, self.settings.admin())
        self._consumers: dict[str | None, Any] = {}  # by group; they look up offsets and never join

    # ---- topics

    def topics(self) -> dict[str, TopicSpec]:
        """Topics whose settings this user may not see have cleanup `unknown`."""
        described = self._ask(self._admin.describe_topics)
        found = {topic["name"]: topic for topic in described if not topic["is_internal"]}
        cleanups = self._cleanups(list(found))
        return {
            name: TopicSpec(name, len(topic["partitions"]), cleanups.get(name, "unknown"))
            for name, topic in sorted(found.items())
            if not topic["error_code"]
        }

    def _cleanups(self, names: list[str]) -> dict[str, str]:
        return {name: cleanup_of(settings) for name, settings in self._settings_of(names, CLEANUP_SETTINGS).items()}

    def _settings_of(self, names: list[str], wanted: Iterable[str]) -> dict[str, dict[str, str]]:
        """By topic, these settings; topics whose settings this user may not see are left out."""
        if not names:
            return {}
        asked = dict.fromkeys(wanted, "")
        resources = [ConfigResource(ConfigResourceType.TOPIC, name, asked) for name in names]
        described = self._ask(lambda: self._admin.describe_configs(resources, config_filter="all")).get("topic", {})
        return {
            name: {key: entry["value"] for key, entry in entries.items()}
            for name, entries in described.items()
            if entries
        }

    def _brokers(self) -> int:
        return len(self._ask(self._admin.describe_cluster)["brokers"])

    def weaknesses(self, names: Iterable[str]) -> list[str]:
        wanted, brokers = set(names), self._brokers()
        copies = {
            topic["name"]: min((len(partition["replica_nodes"]) for partition in topic["partitions"]), default=0)
            for topic in self._ask(self._admin.describe_topics)
            if topic["name"] in wanted
        }
        settings = self._settings_of(sorted(copies), SAFETY_SETTINGS)
        return [
            found
            for name in sorted(settings)
            for found in weaknesses(f"{self.url}: topic {name!r}", copies[name], brokers, settings[name])
        ]

    def create(self, specs: Iterable[TopicSpec]) -> None:
        usual = None
        topics = {}
        for spec in specs:
            usual = usual or min(COPIES, self._brokers())
            copies = spec.replication or usual
            topics[spec.name] = {
                "num_partitions": spec.partitions,
                "replication_factor": copies,
                "configs": topic_settings(spec, copies),
            }
        if not topics:
            return
        answer = self._ask(lambda: self._admin.create_topics(topics, raise_errors=False))
        for topic in answer["topics"]:
            kind = errors.for_code(topic["error_code"])
            if kind not in (errors.NoError, errors.TopicAlreadyExistsError):
                name = topic["name"]
                reason = topic.get("error_message") or kind.description
                error = translate(kind(reason), self.settings, name, "Create")
                if type(error) is Refused and not issubclass(kind, errors.AuthorizationError):
                    error = Refused(f"{self.url}: cannot create topic {name!r}: {reason}")
                raise error
        with translating(self.settings):
            self._admin.wait_for_topics(list(topics), timeout_ms=self.settings.patience_ms)

    def topic_ids(self, names: Iterable[str]) -> dict[str, str | None]:
        names = list(names)
        described = {topic["name"]: topic for topic in self._ask(lambda: self._admin.describe_topics(names))}
        found: dict[str, str | None] = {}
        for name in names:
            kind = errors.for_code(described[name]["error_code"])
            if kind not in (errors.NoError, errors.LeaderNotAvailableError):
                raise translate(kind(kind.description), self.settings, name)
            id = str(described[name].get("topic_id") or _NO_ID)
            found[name] = None if id == _NO_ID else id
        return found

    def denied(self, rights: Iterable[Right]) -> list[Right]:
        return find_denied(self._admin, self._ask, rights)

    def partition_count(self, topic: str, patience: float | None = None) -> int:
        """How many partitions the topic has now. Raises `TopicMissing`; `BusUnavailable` after `patience` seconds."""
        (described,) = self._ask(lambda: self._admin.describe_topics([topic]), patience)
        kind = errors.for_code(described["error_code"])
        if kind in (errors.NoError, errors.LeaderNotAvailableError):
            return len(described["partitions"])
        if kind is errors.InvalidTopicError:
            raise topic_missing(topic, self.settings)
        raise translate(kind(kind.description), self.settings, topic)

    def _ask(self, request: Callable[[], Any], patience: float | None = None) -> Any:
        """Retries a request of the admin client, which unlike other clients fails at once while a broker restarts."""
        deadline = time.monotonic() + (self.settings.patience if patience is None else patience)
        while True:
            try:
                return request()
            except errors.KafkaError as error:
                if not isinstance(error, errors.RetriableError) or time.monotonic() > deadline:
                    raise translate(error, self.settings) from error
            time.sleep(min(_RETRY_SECONDS, max(0.0, deadline - time.monotonic())))

    # ---- offsets

    def begin_offsets(self, topic: str) -> dict[int, int]:
        return self._offsets(topic, lambda client, asked, ms: client.beginning_offsets(asked, timeout_ms=ms))

    def end_offsets(self, topic: str) -> dict[int, int]:
        """A partition ends before its first open transaction: readers see nothing beyond it yet."""
        return self._offsets(topic, lambda client, asked, ms: client.end_offsets(asked, timeout_ms=ms))

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int | None]:
        time_ms = max(0, timestamp_ms)
        found = self._offsets(
            topic, lambda client, asked, ms: client.offsets_for_times(dict.fromkeys(asked, time_ms), timeout_ms=ms)
        )
        return {partition: None if place is None else place.offset for partition, place in found.items()}

    def _offsets(self, topic: str, ask: Callable[[Any, list[Any], int], dict[Any, Any]]) -> dict[int, Any]:
        """The result per partition. A client does not notice that a topic has grown, so a new one is opened then."""
        deadline = time.monotonic() + self.settings.patience
        while True:
            partitions = self._partitions(topic)
            with translating(self.settings, topic), suppress(KeyError):
                found = ask(self._consumer(), partitions, self.settings.patience_ms)
                return {tp.partition: found[tp] for tp in partitions}
            self._consumers.pop(None).close()
            if time.monotonic() > deadline:
                raise BusUnavailable(
                    f"{self.url}: {topic!r} has partitions without a leader; check that all brokers are running"
                )

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Includes commits in progress, which it waits for."""
        partitions = self._partitions(topic)
        consumer = self._consumer(group)
        with translating(self.settings, topic):
            found = {tp.partition: consumer.committed(tp, timeout_ms=self.settings.patience_ms) for tp in partitions}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def _partitions(self, topic: str) -> list[Any]:
        return [ClientPartition(topic, number) for number in range(self.partition_count(topic))]

    def _consumer(self, group: str | None = None) -> Any:
        if group not in self._consumers:
            arguments = {**self.settings.consumer(), "group_id": group}
            self._consumers[group] = open_client(KafkaConsumer, self.settings, arguments)
        return self._consumers[group]

    # ---- reading and writing

    def reader(self, start: Mapping[TopicPartition, int], waits: bool = True) -> Reader:
        return KafkaReader(self.settings, self.partition_count, self.begin_offsets, start, waits)

    def subscribe(self, topic: str, group: str) -> Subscription:
        return KafkaSubscription(self.settings, self.partition_count, topic, group)

    def writer(self) -> Writer:
        return KafkaWriter(self.settings, self.partition_count)

    def lock(self, name: str, topic: str) -> Lock:
        return KafkaLock(self.settings, self.partition_count, name, topic)

    def publisher(self, name: str) -> Publisher:
        return KafkaPublisher(self.settings, self.partition_count, self.end_offsets, name)

    def offset_writer(self, partition: TopicPartition) -> OffsetWriter:
        topic, number = partition
        compacted = self.topics()[topic].cleanup == "compact"

        def delete_before(offset: int) -> None:
            self._ask(lambda: self._admin.delete_records({ClientPartition(topic, number): offset}))

        return KafkaOffsetWriter(
            self.url,
            partition,
            self.writer(),
            open_publisher=lambda: self.publisher(f"{topic}.{number}.copy"),
            end_offset=lambda: self.end_offsets(topic)[number],
            delete_before=None if compacted else delete_before,
        )

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()
        self._admin.close()
