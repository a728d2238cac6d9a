"""What librdkafka reports between records, by a scripted client: a broker lets no such batch in."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition

from stream_cgzsl.bus import Reader, Record, TopicPartition
from stream_cgzsl.bus.kafka.contact import Contact
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.librdkafka.polling import Poller
from stream_cgzsl.errors import Expired, Refused
from stream_cgzsl.schemas.message import UNREADABLE

TP = TopicPartition("t", 0)
SETTINGS = KafkaSettings.parse("kafka://a:1", {})


def record(offset: int) -> Message:
    return Message("t", 0, offset, b"k", b"%d" % offset, None, None, (1, 5))


def event(code: int, offset: int) -> Message:
    return Message("t", 0, offset, None, None, None, KafkaError(code), (0, 0))


class Client:
    """Delivers what is given, at once, and notes where it was told to go on."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)
        self.sought: list[int] = []

    def consume(self, count: int, _: float) -> list[Message]:
        taken, self._messages = self._messages[:count], self._messages[count:]
        return taken

    def poll(self, _: float) -> Message | None:
        return None

    def seek(self, place: ClientPartition) -> None:
        self.sought.append(place.offset)


class Other(Reader):
    """Reads two records that the client could not read, as the other client does."""

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:  # noqa: ARG002
        return [Record("t", 0, offset, 5, None, None, ((UNREADABLE, b""),)) for offset in (2, 3)]

    def position(self, partition: TopicPartition) -> int:  # noqa: ARG002
        return 4

    def assign(self, start: Mapping[TopicPartition, int]) -> None:
        raise AssertionError(start)

    def close(self) -> None: ...


def poller(client: Client, position: int = 0, group: str | None = None) -> Poller:
    def open_other(start: Mapping[TopicPartition, int]) -> Reader:
        assert start == {TP: 2}
        return Other()

    made = Poller(SETTINGS, client, Contact(SETTINGS, lambda *_: 1), open_other, group)
    made.positions = {TP: position}
    return made


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION])
def test_what_it_cannot_read_is_read_by_the_other_client(code: int) -> None:
    client = Client(record(0), record(1), event(code, 2))
    reading = poller(client)
    records = reading.poll(0.0, 100)
    assert [(r.offset, r.value) for r in records] == [(0, b"0"), (1, b"1"), (2, None), (3, None)]
    assert (client.sought, reading.positions) == ([4], {TP: 4})


def test_the_end_of_a_partition_moves_the_position_and_ends_the_poll() -> None:
    reading = poller(Client(event(KafkaError._PARTITION_EOF, 7)), position=5)
    assert reading.poll(60.0, 100) == []
    assert reading.positions == {TP: 7}


def test_what_an_older_assignment_brings_late_is_left_out() -> None:
    stray = Message("other", 0, 9, b"k", b"v", None, None, (1, 5))
    reading = poller(Client(record(1), record(5), stray, record(6)), position=5)
    assert [r.offset for r in reading.poll(0.0, 100)] == [5, 6]
    assert reading.positions == {TP: 7}


def test_records_before_an_error_are_returned_first() -> None:
    reading = poller(Client(record(0), event(KafkaError._AUTO_OFFSET_RESET, 1)))
    assert [r.offset for r in reading.poll(0.0, 100)] == [0]
    with pytest.raises(Expired):
        reading.poll(0.0, 100)


def test_a_missing_right_is_named() -> None:
    with pytest.raises(Refused, match="Read on topic 't'"):
        poller(Client(event(KafkaError.TOPIC_AUTHORIZATION_FAILED, 0))).poll(0.0, 100)


def test_a_reader_needs_no_right_on_a_group() -> None:
    denied = event(KafkaError.GROUP_AUTHORIZATION_FAILED, 0)
    assert poller(Client(denied, record(0))).poll(0.0, 100) != []
    with pytest.raises(Refused, match="Read on group 'g'"):
        poller(Client(denied), group="g").poll(0.0, 100)


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._MAX_POLL_EXCEEDED])
def test_what_the_client_puts_right_itself_is_waited_for(code: int) -> None:
    assert poller(Client(event(code, 0), record(0))).poll(0.0, 100) != []
