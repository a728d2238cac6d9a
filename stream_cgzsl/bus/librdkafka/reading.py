"""Reads from Kafka with librdkafka: given partitions from given offsets, or a topic as a member of a group."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus.interface import Reader, Subscription
from stream_cgzsl.bus.kafka.contact import Contact, PartitionCount
from stream_cgzsl.bus.kafka.errors import expired, partition_missing, translate
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.librdkafka import settings as client_settings
from stream_cgzsl.bus.librdkafka.errors import LATER, as_kafka
from stream_cgzsl.bus.librdkafka.polling import Poller
from stream_cgzsl.bus.types import Record, TopicPartition
from stream_cgzsl.errors import CgzslError, Expired

OpenReader = Callable[[Mapping[TopicPartition, int]], Reader]
_SETTLE_SECONDS = 0.5
_FEW = 16


class LibrdkafkaReader(Reader):
    """`open_other` opens a reader of kafka-python, for what librdkafka cannot read."""

    def __init__(
        self,
        settings: KafkaSettings,
        partition_count: PartitionCount,
        begin_offsets: Callable[[str], dict[int, int]],
        open_other: OpenReader,
        start: Mapping[TopicPartition, int],
        waits: bool = True,
    ) -> None:
        self._settings = settings
        self._begin_offsets = begin_offsets
        for topic, number in start:
            count = partition_count(topic)
            if number >= count:
                raise partition_missing(topic, number, count, settings)
        self._consumer = client_settings.opened(Consumer, settings, client_settings.consumer(settings, waits))
        self._contact = Contact(settings, partition_count)
        self._poller = Poller(settings, self._consumer, self._contact, open_other)
        self.assign(start)

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        try:
            return self._poller.poll(timeout, max_records)
        except Expired as error:
            requested: Any = getattr(error.__cause__, "args", ({},))[0]
            for tp, offset in requested.items():
                raise expired(self._settings, tp, offset, self._begin_offsets(tp.topic)[tp.partition]) from error
            raise

    def position(self, partition: TopicPartition) -> int:
        return self._poller.positions[partition]

    def assign(self, start: Mapping[TopicPartition, int]) -> None:
        """Partitions that go on where they are keep what the client has fetched of them."""
        current = self._poller.positions
        if start and all(current.get(tp) == offset for tp, offset in start.items()):
            dropped = [ClientPartition(*tp) for tp in current if tp not in start]
            if dropped:
                self._consumer.incremental_unassign(dropped)
        else:
            self._consumer.assign([ClientPartition(*tp, offset) for tp, offset in start.items()])
        self._poller.positions = {TopicPartition(*tp): offset for tp, offset in start.items()}
        self._contact.expect(tp.topic for tp in start)

    def close(self) -> None:
        self._poller.close()


class LibrdkafkaSubscription(Subscription):
    """Partitions move between members without interrupting the members that stay (cooperative-sticky)."""

    def __init__(
        self, settings: KafkaSettings, partition_count: PartitionCount, open_other: OpenReader, topic: str, group: str
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._group = group
        partition_count(topic)  # raises if the topic is missing
        arguments = {**client_settings.member(settings, group), "on_commit": self._committed}
        self._consumer = client_settings.opened(Consumer, settings, arguments)
        contact = Contact(settings, partition_count)
        contact.expect([topic])
        self._poller = Poller(settings, self._consumer, contact, open_other, group)
        self._buffered: list[Record] = []
        self._returned: dict[int, int] = {}  # by partition, the offset after the last record returned
        self._lost: set[TopicPartition] = set()
        self._refused: KafkaError | None = None
        self._unanswered = False  # the last commit without waiting
        self._joining = False
        # A member that is not closed at the end of the process would make the client wait for its group for ever.
        self._leave = weakref.finalize(self, self._poller.close)

    def _join(self) -> None:
        """With the first poll: the client's own thread would join at once, and hold partitions that nobody polls."""
        self._joining = True
        self._consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._gone, on_lost=self._gone)

    def _assigned(self, _: Consumer, partitions: Iterable[ClientPartition]) -> None:
        for tp in partitions:
            self._poller.positions[TopicPartition(tp.topic, tp.partition)] = -1

    def _gone(self, _: Consumer, partitions: Iterable[ClientPartition]) -> None:
        for tp in partitions:
            self._poller.positions.pop((tp.topic, tp.partition), None)
            self._returned.pop(tp.partition, None)
            self._lost.add(TopicPartition(tp.topic, tp.partition))

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        if not self._joining:
            self._join()
        if self._buffered:
            records, self._buffered = self._buffered[:max_records], self._buffered[max_records:]
        else:
            records = self._poller.poll(timeout, max_records)
        for record in records:
            self._returned[record.partition] = record.offset + 1
        return records

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        deadline = time.monotonic() + self._settings.patience
        self._lost.clear()
        while True:
            owned = self._owned({tp: offset for tp, offset in offsets.items() if tp not in self._lost})
            if not owned:
                return
            try:
                results = self._consumer.commit(offsets=owned, asynchronous=False)
                error = next((result.error for result in results if result.error is not None), None)
            except KafkaException as raised:
                error = raised.args[0]
            if error is None:
                return
            if error.code() not in LATER or time.monotonic() > deadline:
                raise self._translate(error)
            self._buffered += self._poller.poll(_SETTLE_SECONDS, 1000)  # a rebalance only completes while we poll

    def commit_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._unanswered and not self._buffered:  # nobody has polled since, and answers come only with records
            self._buffered = self._poller.poll(0.0, _FEW)
        refused, self._refused = self._refused, None
        if refused is not None:
            raise self._translate(refused)
        owned = self._owned(offsets)
        if owned:
            try:
                self._consumer.commit(offsets=owned, asynchronous=True)
                self._unanswered = True
            except KafkaException as raised:
                self._committed(raised.args[0], [])

    def _committed(self, error: KafkaError | None, partitions: Iterable[ClientPartition]) -> None:
        """The result of an earlier commit; called while polling."""
        self._unanswered = False
        for failure in (error, *(tp.error for tp in partitions)):
            if failure is not None and failure.code() not in LATER and not failure.retriable():
                self._refused = failure

    def _owned(self, offsets: Mapping[TopicPartition, int]) -> list[ClientPartition]:
        owned = self.assignment()
        return [ClientPartition(*tp, offset) for tp, offset in offsets.items() if tp in owned]

    def _translate(self, error: KafkaError) -> CgzslError:
        denied = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        return translate(as_kafka(error, self._group if denied else None), self._settings, self._topic, "Read")

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(TopicPartition(*tp) for tp in self._poller.positions)

    def lag(self) -> int:
        """As of the last fetch per partition. A partition that has returned no record yet counts as zero."""
        lag = 0
        for number, position in self._returned.items():
            _, end = self._consumer.get_watermark_offsets(ClientPartition(self._topic, number), cached=True)
            lag += max(0, end - position)
        return lag

    def close(self) -> None:
        self._leave()
