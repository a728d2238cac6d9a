"""What a producer may send and nobody can read costs its own offsets: never the reader, and never another record."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from kafka import TopicPartition as ClientPartition
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from stream_cgzsl.bus.kafka import batches
from stream_cgzsl.bus.kafka.codecs import LIMIT_BYTES, TooLarge, decompress
from stream_cgzsl.schemas import InvalidEvent, decode
from stream_cgzsl.schemas.message import UNREADABLE

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])


class NotUtf8(str):
    """A header name that the client sends as bytes that are no text."""

    def encode(self, *_: Any) -> bytes:
        return b"\xff\xfe"


def batch(first: int, values: list[bytes], codec: int = 0, names: dict[int, str] | None = None) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 2**31)
    for number, value in enumerate(values):
        name = (names or {}).get(number)
        builder.append(number, 1000 + number, b"k", value, [] if name is None else [(name, b"v")])
    return first.to_bytes(8, "big") + bytes(builder.build())[8:]


def damaged(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A batch with other content after its header, as a producer would send it: length and checksum are right."""
    from kafka.record.util import calc_crc32c

    body = content[21:61] + change(content[61:])
    length = (9 + len(body)).to_bytes(4, "big")
    return content[:8] + length + content[12:17] + calc_crc32c(body).to_bytes(4, "big") + body


def partition_records(*content: bytes, start: int = 0) -> Any:
    return batches._PartitionRecords(start, ClientPartition("t", 0), MemoryRecords(b"".join(content)))


def read(*content: bytes, start: int = 0) -> list[tuple[int, bytes]]:
    """By offset, the value, or why there is none."""
    records = partition_records(*content, start=start)
    found = []
    while records and (taken := records.take(3)):
        for record in taken:
            headers = dict(record.headers)
            found.append((record.offset, headers.get(UNREADABLE, record.value)))
    return found


GOOD = [b"a", b"b"]


@CODECS
def test_a_bomb_costs_its_own_offsets(codec: int) -> None:
    bomb = batch(2, [b"x", bytes(LIMIT_BYTES), b"y"], codec)
    assert len(bomb) < 5_000_000
    reason = b"its batch has more than 33,554,432 bytes when decompressed"
    found = read(batch(0, GOOD), bomb, batch(5, GOOD))
    assert found == [(0, b"a"), (1, b"b"), *((offset, reason) for offset in (2, 3, 4)), (5, b"a"), (6, b"b")]


@CODECS
def test_content_up_to_the_limit_is_read(codec: int) -> None:
    values = [bytes([number]) * 4_000_000 for number in range(8)]
    assert read(batch(0, values, codec)) == list(enumerate(values))


@CODECS
def test_content_that_is_not_compressed_as_it_says(codec: int) -> None:
    bad = damaged(batch(2, [bytes(1000), b"b"], codec), lambda content: b"\xffnonsense" + content[9:])
    found = read(batch(0, GOOD), bad, batch(4, GOOD))
    assert [offset for offset, _ in found] == [0, 1, 2, 3, 4, 5]
    assert all(b"cannot be decompressed" in why for _, why in found[2:4])


def test_a_header_name_that_is_not_utf8_costs_one_record() -> None:
    found = read(batch(0, [b"a", b"b", b"c"], names={1: NotUtf8("x")}))
    assert [found[0], found[2]] == [(0, b"a"), (2, b"c")]
    assert b"UnicodeDecodeError" in found[1][1] or b"utf-8" in found[1][1]


def test_a_record_with_a_wrong_length_costs_the_rest_of_its_batch() -> None:
    bad = damaged(batch(0, GOOD), lambda content: content[: len(content) // 2] + b"\xff" * 12)
    assert [(offset, value[:21]) for offset, value in read(bad, batch(2, GOOD))] == [
        (0, b"a"),
        (1, b"its batch is damaged "),
        (2, b"a"),
        (3, b"b"),
    ]


def test_a_record_over_the_limit() -> None:
    found = read(batch(0, [b"a", bytes(9_000_000), b"c"], GZIP))
    assert (found[0], found[2]) == ((0, b"a"), (2, b"c"))
    assert found[1][1].startswith(b"it has 9,000,")


def test_reading_may_start_in_the_middle_of_what_cannot_be_read() -> None:
    bomb = batch(0, [bytes(LIMIT_BYTES), b"x", b"y"], GZIP)
    assert [offset for offset, _ in read(bomb, batch(3, GOOD), start=2)] == [2, 3, 4]


def test_a_wrong_checksum_raises() -> None:
    """It was damaged after it was written: another replica may have it whole."""
    content = bytearray(batch(2, GOOD))
    content[-1] ^= 1
    records = partition_records(batch(0, GOOD), bytes(content))
    assert [record.value for record in records.take(10)] == GOOD
    with pytest.raises(CorruptRecordError, match="at offset 2 failed crc check"):
        records.take(10)
    assert not records, "the client would ask it for more forever"


def test_several_members_count_together() -> None:
    half = gzip.compress(bytes(600))
    assert len(decompress(GZIP, half * 2, 1200)) == 1200
    with pytest.raises(TooLarge):
        decompress(GZIP, half * 2, 1199)


@pytest.mark.parametrize("role", ["attributes", "features", "samples", "control", "holdout"])
def test_an_unreadable_record_is_no_event_of_any_topic(role: str) -> None:
    with pytest.raises(InvalidEvent) as raised:
        decode(role, None, None, ((UNREADABLE, b"its batch is damaged"),))
    assert (raised.value.reason, "its batch is damaged" in str(raised.value)) == ("unreadable", True)
