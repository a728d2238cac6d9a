"""Reads from Kafka: given partitions from given offsets, or a topic as a member of a group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import kafka.errors as errors
from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.structs import MemberState, OffsetAndMetadata

from stream_cgzsl.bus.interface import Reader, Subscription
from stream_cgzsl.bus.kafka.batches import read_safely
from stream_cgzsl.bus.kafka.clients import open_client, resume_join
from stream_cgzsl.bus.kafka.contact import Contact, PartitionCount
from stream_cgzsl.bus.kafka.errors import expired, partition_missing, translate, translating
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.types import Record, TopicPartition
from stream_cgzsl.errors import Expired
from stream_cgzsl.schemas.message import Headers

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 0.5


class _Poller:
    """Polls a consumer, and detects what the client does not report: deleted topics and unreachable brokers."""

    def __init__(self, settings: KafkaSettings, consumer: Any, partition_count: PartitionCount) -> None:
        self._settings = settings
        self._consumer = consumer
        read_safely(consumer)
        self._contact = Contact(settings, partition_count)
        self.expect = self._contact.expect

    def poll(self, timeout: float, max_records: int) -> list[Record]:
        with translating(self._settings, operation="Read"):
            batches = self._consumer.poll(timeout_ms=int(timeout * 1000), max_records=max_records)
        self._contact.note(bool(batches), timeout)
        return [
            Record(topic, partition, r.offset, r.timestamp, r.key, r.value, full_headers(r.headers))
            for (topic, partition), records in batches.items()
            for r in records
        ]


def full_headers(headers: list[tuple[str, bytes | None]]) -> Headers:
    """A header without a value gets an empty one."""
    for _, value in headers:
        if value is None:
            return tuple((name, value or b"") for name, value in headers)
    return tuple(headers)  # type: ignore[arg-type]


class KafkaReader(Reader):
    def __init__(
        self,
        settings: KafkaSettings,
        partition_count: PartitionCount,
        begin_offsets: Callable[[str], dict[int, int]],
        start: Mapping[TopicPartition, int],
        waits: bool = True,
    ) -> None:
        self._settings = settings
        self._begin_offsets = begin_offsets
        for topic, number in start:
            count = partition_count(topic)
            if number >= count:
                raise partition_missing(topic, number, count, settings)
        self._consumer = open_client(KafkaConsumer, settings, settings.consumer(waits))
        self._poller = _Poller(settings, self._consumer, partition_count)
        self.assign(start)

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        try:
            return self._poller.poll(timeout, max_records)
        except Expired as error:
            raise self._with_offsets(error) from error

    def _with_offsets(self, error: Expired) -> Expired:
        """The same error, with the offset that was requested and the first one kept."""
        requested: Any = getattr(error.__cause__, "args", ({},))[0]
        for tp, offset in requested.items() if isinstance(requested, dict) else ():
            return expired(self._settings, TopicPartition(*tp), offset, self._begin_offsets(tp.topic)[tp.partition])
        return error

    def position(self, partition: TopicPartition) -> int:
        with translating(self._settings, partition.topic):
            position: int = self._consumer.position(ClientPartition(*partition), timeout_ms=self._settings.patience_ms)
        return position

    def assign(self, start: Mapping[TopicPartition, int]) -> None:
        self._consumer.assign([ClientPartition(*tp) for tp in start])
        for tp, offset in start.items():
            self._consumer.seek(ClientPartition(*tp), offset)
        self._poller.expect(tp.topic for tp in start)

    def close(self) -> None:
        self._consumer.close()


class KafkaSubscription(Subscription):
    """Partitions move between members without interrupting the members that stay (cooperative-sticky).

    During a rebalance, `poll` may block for half a second even with a shorter timeout: the client forgets a join that
    completes between two polls and starts another, so members with short polls could rejoin forever.
    """

    def __init__(self, settings: KafkaSettings, partition_count: PartitionCount, topic: str, group: str) -> None:
        self._settings = settings
        self._group = group
        self._topic = topic
        partition_count(topic)  # raises if the topic is missing
        self._consumer = open_client(KafkaConsumer, settings, settings.member(group))
        self._consumer.subscribe([topic])
        self._poller = _Poller(settings, self._consumer, partition_count)
        self._poller.expect([topic])
        self._buffered: list[Record] = []
        self._pending_commit: Any = None
        self._positions: dict[int, int] = {}  # by partition, the offset after the last record returned

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        if self._buffered:
            records, self._buffered = self._buffered[:max_records], self._buffered[max_records:]
        else:
            if self._consumer.group_metadata().state != MemberState.STABLE:
                timeout = max(timeout, _SETTLE_SECONDS)
            resume_join(self._consumer)
            records = self._poller.poll(timeout, max_records)
        for record in records:
            self._positions[record.partition] = record.offset + 1
        return records

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        deadline = time.monotonic() + self._settings.patience
        while True:
            owned = self._owned(offsets)
            if not owned:
                return
            try:
                self._consumer.commit(owned, timeout_ms=self._settings.patience_ms)
                return
            except (errors.RebalanceInProgressError, errors.CommitFailedError) as error:
                if not _is_rebalance(error):
                    _log.info("group %s removed this member; its offsets are not committed", self._group)
                    return
                if time.monotonic() > deadline:
                    raise translate(error, self._settings, self._topic, "Read") from error
                resume_join(self._consumer)
                self._buffered += self._poller.poll(_SETTLE_SECONDS, 1000)  # a rebalance only completes while we poll
            except errors.KafkaError as error:
                raise translate(error, self._settings, self._topic, "Read") from error

    def commit_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        previous = self._pending_commit
        temporary = (errors.RetriableError, errors.RebalanceInProgressError, errors.CommitFailedError)
        if previous is not None and previous.failed() and not isinstance(previous.exception, temporary):
            raise translate(previous.exception, self._settings, self._topic, "Read")
        owned = self._owned(offsets)
        self._pending_commit = self._consumer.commit_async(owned) if owned else None

    def _owned(self, offsets: Mapping[TopicPartition, int]) -> dict[Any, OffsetAndMetadata]:
        owned = self.assignment()
        return {ClientPartition(*tp): OffsetAndMetadata(offset) for tp, offset in offsets.items() if tp in owned}

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(TopicPartition(*tp) for tp in self._consumer.assignment())

    def lag(self) -> int:
        """As of the last fetch per partition. A partition that has returned no record yet counts as zero."""
        ends = {tp.partition: self._consumer.highwater(tp) for tp in self._consumer.assignment()}
        for lost in self._positions.keys() - ends.keys():  # another member continues there
            del self._positions[lost]
        return sum(max(0, end - self._positions.get(number, end)) for number, end in ends.items() if end is not None)

    def close(self) -> None:
        self._consumer.close()


def _is_rebalance(error: errors.KafkaError) -> bool:
    """Whether the group is rebalancing, as opposed to having removed this member."""
    return any(isinstance(part, errors.RebalanceInProgressError) for part in (error, *error.args))
