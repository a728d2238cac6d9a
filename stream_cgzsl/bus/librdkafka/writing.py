"""Writes to Kafka with librdkafka."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

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


class _Place(NamedTuple):
    partition: int
    offset: int


class _Sent:
    """What the outbox knows of a message: as a future of kafka-python."""

    __slots__ = ("_client", "exception", "is_done", "value")

    def __init__(self, client: Producer) -> None:
        self._client = client
        self.is_done = False
        self.exception: Exception | None = None
        self.value: _Place | None = None

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        """Called while the client is polled."""
        self.is_done = True
        if error is None:
            self.value = _Place(message.partition(), message.offset())
        else:
            self.exception = as_kafka(error)

    def get(self, timeout: float) -> _Place | None:
        deadline = time.monotonic() + timeout
        while not self.is_done and (left := deadline - time.monotonic()) > 0:
            self._client.poll(min(left, _STEP_SECONDS))
        if not self.is_done:
            raise as_kafka(KafkaError(KafkaError._TIMED_OUT))
        if self.exception is not None:
            raise self.exception
        return self.value


class _Producer:
    """librdkafka's producer with the methods that the outbox calls on kafka-python's."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._patience = settings.patience
        self._client = Producer(client_settings.producer(settings))

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
        more: dict[str, Any] = {"headers": headers} if headers else {}
        if partition is not None:
            more["partition"] = partition
        if timestamp_ms is not None:
            more["timestamp"] = timestamp_ms or 1  # 0 would mean now
        deadline = None
        while True:
            try:
                self._client.produce(topic, value, key, on_delivery=sent.delivered, **more)
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
