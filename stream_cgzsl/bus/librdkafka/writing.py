"""Writes to Kafka with librdkafka."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from stream_cgzsl.bus.interface import Writer
from stream_cgzsl.bus.kafka.contact import PartitionCount
from stream_cgzsl.bus.kafka.outbox import Outbox
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.librdkafka import settings as client_settings
from stream_cgzsl.bus.librdkafka.errors import as_kafka
from stream_cgzsl.bus.types import Receipt
from stream_cgzsl.schemas.message import Message

_CLOSE_SECONDS = 5.0
_STEP_SECONDS = 0.1
_ANY_PARTITION = -1


class LibrdkafkaWriter(Writer):
    """The client sends in the background; `send` blocks while more than 16 MiB are unacknowledged."""

    def __init__(self, settings: KafkaSettings, partition_count: PartitionCount) -> None:
        self._producer = _Producer(settings)
        self._outbox = Outbox(settings, self._producer, partition_count)

    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        return self._outbox.send(topic, message, partition)

    def push(self) -> None:
        """Only collects results: the client sends by itself after a few milliseconds."""
        self._producer.look()
        self._outbox.collect_done()

    def flush(self) -> None:
        self._outbox.flush()

    def close(self) -> None:
        """Flushes, then closes even if that failed."""
        try:
            self._outbox.flush()
        finally:
            self._producer.close()


class _Sent:
    """What the outbox knows of a message: as a future of kafka-python, and as the place that is its result."""

    __slots__ = ("_client", "exception", "is_done", "offset", "partition")

    def __init__(self, client: Producer) -> None:
        self._client = client
        self.is_done = False
        self.exception: Exception | None = None
        self.partition = self.offset = -1

    @property
    def value(self) -> _Sent:
        return self

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        """Called while the client is polled."""
        self.is_done = True
        if error is None:
            self.partition, self.offset = message.partition(), message.offset()
        else:
            self.exception = as_kafka(error)

    def get(self, timeout: float) -> _Sent:
        deadline = time.monotonic() + timeout
        while not self.is_done and (left := deadline - time.monotonic()) > 0:
            self._client.poll(min(left, _STEP_SECONDS))
        if not self.is_done:
            raise as_kafka(KafkaError(KafkaError._TIMED_OUT))
        if self.exception is not None:
            raise self.exception
        return self


class _Producer:
    """librdkafka's producer with the methods that the outbox calls on kafka-python's."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._patience = settings.patience
        self._client = client_settings.opened(Producer, settings, client_settings.producer(settings))

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: list[tuple[str, bytes]],
        partition: int | None,
        timestamp_ms: int | None,
    ) -> _Sent:
        sent = _Sent(self._client)
        number = _ANY_PARTITION if partition is None else partition
        time_ms = 0 if timestamp_ms is None else timestamp_ms or 1  # 0 means now
        deadline = None
        while True:
            try:
                self._client.produce(
                    topic, value, key, number, on_delivery=sent.delivered, timestamp=time_ms, headers=headers
                )
                return sent
            except BufferError:
                deadline = deadline or time.monotonic() + self._patience
                if time.monotonic() > deadline:
                    raise as_kafka(KafkaError(KafkaError._TIMED_OUT)) from None
                self._client.poll(_STEP_SECONDS)
            except KafkaException as error:
                raise as_kafka(error.args[0]) from error

    def look(self) -> None:
        self._client.poll(0)

    def flush(self, timeout: float) -> None:
        self._client.flush(timeout)

    def close(self) -> None:
        """Gives up what could not be delivered within a few seconds."""
        if self._client.flush(_CLOSE_SECONDS):
            self._client.purge()
            self._client.flush(_STEP_SECONDS)
