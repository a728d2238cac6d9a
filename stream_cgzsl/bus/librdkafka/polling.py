"""Polls a consumer of librdkafka: what it delivers becomes records, what happens between them positions and errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus.interface import Reader
from stream_cgzsl.bus.kafka.contact import Contact
from stream_cgzsl.bus.kafka.errors import translate
from stream_cgzsl.bus.kafka.reading import full_headers
from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES, KafkaSettings
from stream_cgzsl.bus.librdkafka.errors import UNREADABLE as STUCK
from stream_cgzsl.bus.librdkafka.errors import as_kafka, passes
from stream_cgzsl.bus.types import Record, TopicPartition
from stream_cgzsl.schemas.message import UNREADABLE

_DETOUR_SECONDS = 1.0


class Poller:
    """`positions` are the offsets after what was polled, of the partitions that are read now; -1 is not known yet.

    A batch that librdkafka cannot read is read by kafka-python, which makes unreadable records of it: `open_other`
    opens such a reader.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        consumer: Any,
        contact: Contact,
        open_other: Callable[[Mapping[TopicPartition, int]], Reader],
    ) -> None:
        self._settings = settings
        self._consumer = consumer
        self._contact = contact
        self._open_other = open_other
        self._other: Reader | None = None
        self._failure: tuple[KafkaError, str, int] | None = None
        self.positions: dict[tuple[str, int], int] = {}

    def poll(self, timeout: float, max_records: int) -> list[Record]:
        """As `Reader.poll`. Returns early, without records, when a position has passed something else."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise self._translate(*failure)
        deadline = time.monotonic() + timeout
        messages = self._consumer.consume(max_records, 0)
        while True:
            records, passed = self._take(messages)
            left = deadline - time.monotonic()
            if records or passed or left <= 0:
                break
            first = self._consumer.poll(left)
            messages = [] if first is None else [first, *self._consumer.consume(max_records - 1, 0)]
        if self._failure is not None and not records:
            failure, self._failure = self._failure, None
            raise self._translate(*failure)
        self._contact.note(bool(records) or passed, timeout)
        return records

    def _take(self, messages: list[Any]) -> tuple[list[Record], bool]:
        """The records, and whether anything else has moved a position or must be raised."""
        records: list[Record] = []
        passed = False
        positions = self.positions
        for message in messages:
            error = message.error()
            if error is not None:
                passed |= self._take_event(message, error, records)
                continue
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            expected = positions.get((topic, partition))
            if expected is None or offset < expected:
                continue  # of an assignment that is over
            positions[topic, partition] = offset + 1
            key, value, headers = message.key(), message.value(), message.headers()
            headers = full_headers(headers) if headers else ()
            if len(message) > MAX_RECORD_BYTES:
                key, value, headers = None, None, ((UNREADABLE, b"it has %d bytes" % len(message)),)
            records.append(Record(topic, partition, offset, message.timestamp()[1], key, value, headers))
        return records, passed

    def _take_event(self, message: Any, error: KafkaError, records: list[Record]) -> bool:
        """Something between the records; what was read instead of it is added to them."""
        topic, partition, code = message.topic() or "", message.partition(), error.code()
        expected = self.positions.get((topic, partition))
        if code == KafkaError._PARTITION_EOF:
            if expected is None or message.offset() <= expected:
                return False
            self.positions[topic, partition] = message.offset()
            return expected >= 0
        if code in STUCK and expected is not None:
            begin = expected if expected >= 0 else message.offset()
            records += self._read_around(TopicPartition(topic, partition), begin)
            return True
        if code in STUCK or passes(error):
            return False
        self._failure = self._failure or (error, topic, partition)
        return True

    def _read_around(self, tp: TopicPartition, begin: int) -> list[Record]:
        if self._other is None:
            self._other = self._open_other({tp: begin})
        else:
            self._other.assign({tp: begin})
        found = self._other.poll(_DETOUR_SECONDS)
        end = self.positions[tp] = self._other.position(tp)
        try:
            self._consumer.seek(ClientPartition(*tp, end))
        except KafkaException as error:
            raise self._translate(error.args[0], *tp) from error
        return found

    def _translate(self, error: KafkaError, topic: str, partition: int) -> Exception:
        about = {TopicPartition(topic, partition): self.positions.get((topic, partition), -1)}
        client = as_kafka(error, about if error.code() == KafkaError._AUTO_OFFSET_RESET else None)
        translated = translate(client, self._settings, topic or None, "Read")
        translated.__cause__ = client
        return translated

    def close(self) -> None:
        if self._other is not None:
            self._other.close()
        self._consumer.close()
