"""Polls a consumer of librdkafka: what it delivers becomes records, what happens between them positions and errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus.interface import Reader
from stream_cgzsl.bus.kafka.codecs import LIMIT_BYTES
from stream_cgzsl.bus.kafka.contact import Contact
from stream_cgzsl.bus.kafka.errors import translate
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.librdkafka.errors import STUCK, as_kafka, passes
from stream_cgzsl.bus.librdkafka.records import records_of
from stream_cgzsl.bus.types import Record, TopicPartition

_DETOUR_SECONDS = 1.0
_NEVER = 2**63
_place = itemgetter(0, 1)
_offset = itemgetter(2)
_POLL_BYTES = LIMIT_BYTES
_PIECE_RECORDS = 16


class Poller:
    """Without a `group` the client still looks for one, and what it says of that is passed over.

    `positions` are the offsets after what was polled, of the partitions that are read now; -1 is not known yet.

    A batch that librdkafka cannot read is read by kafka-python, which makes unreadable records of it: `open_other`
    opens such a reader.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        consumer: Any,
        contact: Contact,
        open_other: Callable[[Mapping[TopicPartition, int]], Reader],
        group: str | None = None,
    ) -> None:
        self._settings = settings
        self._consumer = consumer
        self._contact = contact
        self._open_other = open_other
        self._group = group
        self._other: Reader | None = None
        self._failure: tuple[KafkaError, str, int] | None = None
        self.positions: dict[tuple[str, int], int] = {}

    def poll(self, timeout: float, max_records: int) -> list[Record]:
        """As `Reader.poll`. Returns early, without records, when a position has passed something else."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise self._translate(*failure)
        deadline = time.monotonic() + timeout
        messages = self._consume([], max_records)
        while True:
            records, passed = self._take(messages)
            left = deadline - time.monotonic()
            if records or passed or left <= 0:
                break
            first = self._consumer.poll(left)
            messages = [] if first is None else self._consume([first], max_records)
        if self._failure is not None and not records:
            failure, self._failure = self._failure, None
            raise self._translate(*failure)
        self._contact.note(bool(records) or passed, timeout)
        return records

    def _consume(self, messages: list[Any], max_records: int) -> list[Any]:
        """These messages and what the client has fetched since, a few at a time, until it is many bytes."""
        size = 0
        while size < _POLL_BYTES and (left := max_records - len(messages)) > 0:
            piece = self._consumer.consume(min(left, _PIECE_RECORDS), 0)
            if not piece:
                break
            messages += piece
            size += sum(map(len, piece))
        return messages

    def _take(self, messages: list[Any]) -> tuple[list[Record], bool]:
        """The records, and whether anything else has moved a position or must be raised."""
        events: list[Any] = []
        if any(map(Message.error, messages)):
            events = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        records = self._advance(records_of(messages))
        passed = False
        for event in events:
            passed |= self._take_event(event, event.error(), records)
        return records, passed

    def _advance(self, records: list[Record]) -> list[Record]:
        """Moves the positions past these records. Leaves out those of an assignment that is over."""
        positions = self.positions
        places = list(map(_place, records))
        offsets = list(map(_offset, records))
        firsts = dict(zip(reversed(places), reversed(offsets), strict=True))
        if any(first < positions.get(place, first + 1) for place, first in firsts.items()):
            records = [record for record in records if positions.get(record[:2], _NEVER) <= record.offset]
            return self._advance(records)
        for place, last in dict(zip(places, offsets, strict=True)).items():
            positions[place] = last + 1
        return records

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
        denied = code == KafkaError.GROUP_AUTHORIZATION_FAILED
        if code in STUCK or passes(error) or (denied and self._group is None):
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
        about: object = None
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            about = {TopicPartition(topic, partition): self.positions.get((topic, partition), -1)}
        elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            about = self._group
        client = as_kafka(error, about)
        translated = translate(client, self._settings, topic or None, "Read")
        translated.__cause__ = client
        return translated

    def close(self) -> None:
        if self._other is not None:
            self._other.close()
        self._consumer.close()
