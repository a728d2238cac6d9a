"""Reads what a fetch has brought, batch by batch, so that what cannot be read costs its own offsets and no more.

The client would raise an error at such a record, and again at every later try. Here each of its offsets becomes a
record without a value and with the header `UNREADABLE`, which says why. Only what any producer may send is treated so:
a batch whose checksum is wrong was damaged later, and raises.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import decode_varint

from stream_cgzsl.bus.kafka.codecs import LIMIT_BYTES, TooLarge, decompress
from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES
from stream_cgzsl.schemas.message import UNREADABLE

_POLL_BYTES = LIMIT_BYTES
_PIECE_RECORDS = 16


def read_safely(consumer: Any) -> None:
    """From now on the consumer passes over what cannot be read, and a poll returns no more than about 32 MiB."""
    fetcher = consumer._fetcher
    fetcher.PartitionRecords = _PartitionRecords
    fetcher.fetched_records = _Bounded(fetcher.fetched_records)


class _Bounded:
    """Takes records from the client a few at a time, until there are enough or they are too many bytes."""

    def __init__(self, fetched_records: Any) -> None:
        self._fetched_records = fetched_records
        self._failure: Exception | None = None

    def __call__(self, max_records: int, update_offsets: bool = True) -> tuple[dict[Any, list[Any]], bool]:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        found: defaultdict[Any, list[Any]] = defaultdict(list)
        size, left, more = 0, max_records, False
        while left > 0 and size < _POLL_BYTES:
            try:
                drained, more = self._fetched_records(min(left, _PIECE_RECORDS), update_offsets=update_offsets)
            except Exception as error:
                if not found:
                    raise
                self._failure = error  # raised by the next call, so that no record is lost
                break
            if not drained:
                break
            for partition, records in drained.items():
                found[partition] += records
                left -= len(records)
                size += sum(max(0, record.serialized_value_size) for record in records)
        return dict(found), more


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def __init__(self, fetch_offset: int, tp: Any, records: MemoryRecords, **options: Any) -> None:
        super().__init__(fetch_offset, tp, _Batches(records._buffer), **options)

    def take(self, n: int | None = None) -> list[Any]:
        """After an error it is empty, so that the client fetches again; else it would ask here for more, forever."""
        try:
            taken: list[Any] = super().take(n)
        except Exception:
            self.drain()
            raise
        return taken


class _Batches(MemoryRecords):  # type: ignore[misc]
    __slots__ = ()

    def next_batch(self) -> Any:
        """The next batch; one in the format from before Kafka 0.11 is left to the client."""
        piece = self._next_slice
        if piece is None or len(piece) < DefaultRecordBatch.HEADER_STRUCT.size or piece[self.MAGIC_OFFSET] != 2:
            return super().next_batch()
        self._cache_next()
        return _Batch(piece)


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """A batch whose iteration raises nothing."""

    _buffer: bytearray
    _pos: int
    _decompressed: bool

    def __init__(self, piece: memoryview) -> None:
        super().__init__(piece)
        self._offset = self.base_offset  # the first offset that has not been returned
        self._trouble: str | None = None  # why nothing more of this batch can be read

    def __iter__(self) -> _Batch:
        if not self._decompressed and self.compression_type:
            try:
                content = decompress(self.compression_type, bytes(memoryview(self._buffer)[self._pos :]))
            except TooLarge:
                self._trouble = f"its batch has more than {LIMIT_BYTES:,} bytes when decompressed"
            except Exception as error:
                self._trouble = f"its batch cannot be decompressed ({error!r})"
            else:
                self._buffer, self._pos = bytearray(content), 0
        self._decompressed = True
        return self

    def __next__(self) -> Any:
        if self._trouble is None and self._next_record_index < self._num_records:
            start = self._pos
            try:
                record = self._read_msg()
                if record.size_in_bytes > MAX_RECORD_BYTES:
                    record = self._unreadable(record.offset, f"it has {record.size_in_bytes:,} bytes")
                self._next_record_index += 1
            except (CorruptRecordError, ValueError, IndexError) as error:
                record = self._skip(start, str(error))
            if record is not None:
                self._offset = record.offset + 1
                return record
        if self._trouble is not None and self._offset <= self.last_offset:
            self._offset += 1
            return self._unreadable(self._offset - 1, self._trouble)
        raise StopIteration

    def _skip(self, start: int, reason: str) -> Any:
        """Passes over one record by its length. None if not even that is there: `_trouble` then says so."""
        try:
            length, after = decode_varint(self._buffer, start)
            _, at = decode_varint(self._buffer, after)  # attributes
            _, at = decode_varint(self._buffer, at)  # time
            delta, at = decode_varint(self._buffer, at)
            offset = self.base_offset + delta
            if not (at <= after + length <= len(self._buffer) and self._offset <= offset <= self.last_offset):
                raise ValueError("its length or its offset is wrong")
        except (ValueError, IndexError):
            self._trouble = f"its batch is damaged ({reason})"
            return None
        self._pos = after + length
        self._next_record_index += 1
        return self._unreadable(offset, f"it is damaged ({reason})")

    def _unreadable(self, offset: int, reason: str) -> DefaultRecord:
        headers = [(UNREADABLE, reason.encode(errors="replace"))]
        return DefaultRecord(0, offset, self.first_timestamp, self.timestamp_type, None, None, headers)
