"""Apache Kafka as the bus: `kafka://host:port`. What a URL may say is in kafka_settings.py.

The client library reconnects by itself and waits quietly while a broker restarts; a call gives up with
`BusUnavailable` after 8 seconds when it never had a connection and after 30 (`patience_ms`) when it had one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import kafka.errors as errors
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.admin import ConfigResource, ConfigResourceType

from stream_cgzsl.bus import kafka_rights
from stream_cgzsl.bus.interface import (
    Bus,
    Lock,
    Placing,
    Publisher,
    Reader,
    Right,
    Subscription,
    TopicPartition,
    TopicSpec,
    Writer,
)
from stream_cgzsl.bus.kafka_clients import opened
from stream_cgzsl.bus.kafka_errors import missing, talking, translated
from stream_cgzsl.bus.kafka_lock import KafkaLock
from stream_cgzsl.bus.kafka_placing import KafkaPlacing
from stream_cgzsl.bus.kafka_reading import KafkaReader, KafkaSubscription
from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.bus.kafka_topics import DESCRIBED, cleanup_of, configuration
from stream_cgzsl.bus.kafka_writing import KafkaPublisher, KafkaWriter
from stream_cgzsl.errors import BusUnavailable, Refused

_RETRY_SECONDS = 0.2


class KafkaBus(Bus):
    """A Kafka cluster. Connects at once, so that a wrong address is known at once."""

    def __init__(self, url: str) -> None:
        self.settings = KafkaSettings.parse(url)
        self.url = self.settings.url
        self._admin = opened(KafkaAdminClient, self.settings, self.settings.admin())
        self._offsets_of: dict[str | None, Any] = {}

    # ---- topics

    def topics(self) -> dict[str, TopicSpec]:
        """Topics whose settings are hidden from this user are reported with cleanup `unknown`."""
        described = self._ask(self._admin.describe_topics)
        found = {topic["name"]: topic for topic in described if not topic["is_internal"]}
        kept = self._kept(list(found))
        return {
            name: TopicSpec(name, len(topic["partitions"]), kept.get(name, "unknown"))
            for name, topic in sorted(found.items())
            if not topic["error_code"]
        }

    def _kept(self, names: list[str]) -> dict[str, str]:
        if not names:
            return {}
        wanted = [ConfigResource(ConfigResourceType.TOPIC, name, dict.fromkeys(DESCRIBED, "")) for name in names]
        described = self._ask(lambda: self._admin.describe_configs(wanted, config_filter="all")).get("topic", {})
        return {
            name: cleanup_of({key: entry["value"] for key, entry in s.items()}) for name, s in described.items() if s
        }

    def create(self, specs: Iterable[TopicSpec]) -> None:
        wanted = {spec.name: spec for spec in specs}
        if not wanted:
            return
        topics = {
            spec.name: {
                "num_partitions": spec.partitions,
                "configs": configuration(spec),
            }
            for spec in wanted.values()
        }
        answer = self._ask(lambda: self._admin.create_topics(topics, raise_errors=False))
        for topic in answer["topics"]:
            kind = errors.for_code(topic["error_code"])
            if kind not in (errors.NoError, errors.TopicAlreadyExistsError):
                name = topic["name"]
                reason = topic.get("error_message") or kind.description
                error = translated(kind(reason), self.settings, name, "Create")
                if type(error) is Refused and not issubclass(kind, errors.AuthorizationError):
                    error = Refused(f"{self.url}: cannot create topic {name!r}: {reason}")
                raise error
        with talking(self.settings):
            self._admin.wait_for_topics(list(wanted), timeout_ms=self.settings.patience_ms)

    def denied(self, rights: Iterable[Right]) -> list[Right]:
        return kafka_rights.denied(self._admin, self._ask, rights)

    def partitions(self, topic: str, patience: float | None = None) -> int:
        """How many partitions the topic has now. Raises `TopicMissing`, and `BusUnavailable` after `patience` seconds."""
        (described,) = self._ask(lambda: self._admin.describe_topics([topic]), patience)
        kind = errors.for_code(described["error_code"])
        if kind in (errors.NoError, errors.LeaderNotAvailableError):
            return len(described["partitions"])
        if kind is errors.InvalidTopicError:
            raise missing(topic, self.settings)
        raise translated(kind(kind.description), self.settings, topic)

    def _ask(self, request: Callable[[], Any], patience: float | None = None) -> Any:
        """The answer to an administrator's request, which unlike other clients' fails at once while a broker restarts."""
        deadline = time.monotonic() + (self.settings.patience if patience is None else patience)
        while True:
            try:
                return request()
            except errors.KafkaError as error:
                if not isinstance(error, errors.RetriableError) or time.monotonic() > deadline:
                    raise translated(error, self.settings) from error
            time.sleep(min(_RETRY_SECONDS, max(0.0, deadline - time.monotonic())))

    # ---- offsets

    def begin_offsets(self, topic: str) -> dict[int, int]:
        return self._offsets(topic, lambda client, asked, ms: client.beginning_offsets(asked, timeout_ms=ms))

    def end_offsets(self, topic: str) -> dict[int, int]:
        """What stands behind the first open transaction of a partition does not count: no reader sees it yet."""
        return self._offsets(topic, lambda client, asked, ms: client.end_offsets(asked, timeout_ms=ms))

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int | None]:
        time_ms = max(0, timestamp_ms)
        found = self._offsets(
            topic, lambda c, asked, ms: c.offsets_for_times(dict.fromkeys(asked, time_ms), timeout_ms=ms)
        )
        return {partition: None if place is None else place.offset for partition, place in found.items()}

    def _offsets(self, topic: str, ask: Callable[[Any, list[Any], int], dict[Any, Any]]) -> dict[int, Any]:
        """An answer for every partition. The client does not ask again about a topic that has grown: a new one does."""
        deadline = time.monotonic() + self.settings.patience
        while True:
            partitions = self._partitions(topic)
            with talking(self.settings, topic), suppress(KeyError):
                found = ask(self._consumer(), partitions, self.settings.patience_ms)
                return {tp.partition: found[tp] for tp in partitions}
            self._offsets_of.pop(None).close()
            if time.monotonic() > deadline:
                raise BusUnavailable(
                    f"{self.url}: {topic!r} has partitions that no broker leads; is the cluster whole?"
                )

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Waits for a commit that is under way: a reader of committed records asks for settled offsets."""
        partitions = self._partitions(topic)
        consumer = self._consumer(group)
        with talking(self.settings, topic):
            found = {tp.partition: consumer.committed(tp, timeout_ms=self.settings.patience_ms) for tp in partitions}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def _partitions(self, topic: str) -> list[Any]:
        return [ClientPartition(topic, number) for number in range(self.partitions(topic))]

    def _consumer(self, group: str | None = None) -> Any:
        """The client that asks for offsets, one a group: it never joins."""
        if group not in self._offsets_of:
            self._offsets_of[group] = opened(
                KafkaConsumer, self.settings, {**self.settings.consumer(), "group_id": group}
            )
        return self._offsets_of[group]

    # ---- reading and writing

    def reader(self, start: Mapping[TopicPartition, int], waits: bool = True) -> Reader:
        return KafkaReader(self.settings, self.partitions, self.begin_offsets, start, waits)

    def subscribe(self, topic: str, group: str) -> Subscription:
        return KafkaSubscription(self.settings, self.partitions, topic, group)

    def writer(self) -> Writer:
        return KafkaWriter(self.settings, self.partitions)

    def lock(self, name: str, topic: str) -> Lock:
        return KafkaLock(self.settings, self.partitions, name, topic)

    def publisher(self, name: str) -> Publisher:
        return KafkaPublisher(self.settings, self.partitions, self.end_offsets, name)

    def placing(self, partition: TopicPartition) -> Placing:
        topic, number = partition
        compacted = self.topics()[topic].cleanup == "compact"

        def remove(before: int) -> None:
            self._ask(lambda: self._admin.delete_records({ClientPartition(topic, number): before}))

        return KafkaPlacing(
            self.url,
            partition,
            self.writer(),
            publisher=lambda: self.publisher(f"{topic}.{number}.copy"),
            reached=lambda: self.end_offsets(topic)[number],
            remove=None if compacted else remove,
        )

    def close(self) -> None:
        for consumer in self._offsets_of.values():
            consumer.close()
        self._offsets_of.clear()
        self._admin.close()
