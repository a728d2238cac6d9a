"""Messages handed to a Kafka producer and not yet acknowledged."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import kafka.errors as errors
from kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus.kafka.contact import PartitionCount
from stream_cgzsl.bus.kafka.errors import partition_missing, translate
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.types import Receipt
from stream_cgzsl.errors import BusUnavailable, CgzslError, TopicMissing
from stream_cgzsl.schemas.message import Message

_MAX_UNACKNOWLEDGED_BYTES = 16 * 1024 * 1024
_OVERHEAD_BYTES = 100
_GRACE_SECONDS = 5.0
_LOOK_UP_SECONDS = 1.0


class Outbox:
    """Sends through `producer`, which by itself would accept any number of messages; here `send` blocks above 16 MiB.

    With `publisher` these are transactions of that publisher, and `last` has the highest offset acknowledged per
    partition since `clear`.
    """

    def __init__(
        self, settings: KafkaSettings, producer: Any, partition_count: PartitionCount, publisher: str | None = None
    ) -> None:
        self._settings = settings
        self._producer = producer
        self._partition_count = partition_count
        self._counts: dict[str, int] = {}
        self._unacknowledged: deque[tuple[Receipt, Any, str, int]] = deque()
        self._bytes = 0
        self._publisher = publisher
        self.last: dict[ClientPartition, int] = {}

    def send(self, topic: str, message: Message, partition: int | None) -> Receipt:
        if partition is not None or topic not in self._counts:
            self._check_partition(topic, partition or 0)
        key, value, headers, timestamp_ms = message
        size = _OVERHEAD_BYTES
        if value is not None:
            size += len(value)
        elif key is None:
            value = b""  # the client requires a key or a value; an empty value means the same
        try:
            future = self._producer.send(topic, value, key, list(headers), partition, timestamp_ms)
        except errors.KafkaError as error:
            raise translate(error, self._settings, topic, "Write", self._publisher) from error
        receipt = Receipt()
        self._unacknowledged.append((receipt, future, topic, size))
        self._bytes += size
        if self._bytes > _MAX_UNACKNOWLEDGED_BYTES:
            self._collect_while(lambda: self._bytes > _MAX_UNACKNOWLEDGED_BYTES // 2, self._deadline())
        return receipt

    def _check_partition(self, topic: str, partition: int) -> None:
        """Looks up a topic that is new here, or that must have grown if it has this partition."""
        if 0 <= partition < self._counts.get(topic, 0):
            return
        count = self._counts[topic] = self._partition_count(topic)
        if not 0 <= partition < count:
            raise partition_missing(topic, partition, count, self._settings)

    def flush(self) -> None:
        """Waits for every acknowledgement, then raises the first failure."""
        if not self._unacknowledged:
            return
        deadline = self._deadline()
        with suppress(errors.KafkaTimeoutError):  # the result of each record, below, says more
            self._producer.flush(self._settings.patience + _GRACE_SECONDS)
        self._collect_while(lambda: True, deadline)

    def _deadline(self) -> float:
        """One for all records waited for, so that many failures take no longer than one."""
        return time.monotonic() + self._settings.patience + _GRACE_SECONDS

    def collect_done(self) -> None:
        """Collects the results up to the first that is still outstanding. Raises the first failure."""
        self._collect_while(lambda: self._unacknowledged[0][1].is_done, 0.0)

    def _collect_while(self, condition: Callable[[], bool], deadline: float) -> None:
        """Collects the oldest results, then raises the first failure among them."""
        first: tuple[errors.KafkaError, str] | None = None
        while self._unacknowledged and condition():
            failure = self._collect_oldest(deadline)
            first = first or failure
        if first is not None:
            raise self._translate(*first)

    def _collect_oldest(self, deadline: float) -> tuple[errors.KafkaError, str] | None:
        """Fills in the oldest receipt. Returns the error and the topic if the message failed."""
        receipt, future, topic, size = self._unacknowledged.popleft()
        self._bytes -= size
        if future.is_done and future.exception is None:
            result = future.value
        else:
            try:
                result = future.get(max(0.0, deadline - time.monotonic()))
            except errors.KafkaError as error:
                return error, topic
        receipt.partition = result.partition
        receipt.offset = result.offset
        if self._publisher is not None:
            self.last[result.topic_partition] = result.offset
        return None

    def _translate(self, error: errors.KafkaError, topic: str) -> CgzslError:
        """A topic that was deleted meanwhile looks like a timeout, because the client waits for it to come back."""
        failure = translate(error, self._settings, topic, "Write", self._publisher)
        if isinstance(failure, BusUnavailable):
            try:
                self._partition_count(topic, _LOOK_UP_SECONDS)
            except TopicMissing as missing:
                self._counts.pop(topic, None)
                failure = missing
            except CgzslError:
                pass  # the first error says it already
        failure.__cause__ = error
        return failure

    def clear(self) -> None:
        self._unacknowledged.clear()
        self._bytes = 0
        self.last.clear()
