"""What a ledger says, read where it is asked for: a stream may have any number of windows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from stream_cgzsl.bus import Bus, Record
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import Genesis, LedgerRecord
from stream_cgzsl.windows.ledger import genesis_in, out_of_order, parse, read_back, read_range


class Ledger:
    """The ledger of one stream. Holds its first and its newest record and reads the others, each time anew.

    Records come completed (see `linked`), also those of versions that did not write all there is now. Raises
    `BrokenLedger` where numbers are not 0, 1, 2 and so on.
    """

    def __init__(self, bus: Bus, topics: Topics, first: LedgerRecord, last: LedgerRecord) -> None:
        self._bus = bus
        self._topic = topics["windows"]
        self.genesis: Genesis = genesis_in(first, bus, topics)
        self.topic_ids = first.topic_ids
        self._configuration: tuple[int, dict[str, Any] | None] = (first.number, first.configuration)
        self.last = last
        self.last = self.complete(last)

    @classmethod
    def open(cls, bus: Bus, topics: Topics) -> Ledger | None:
        """The ledger as it is now; None for a new stream. Costs the same however long it is."""
        topic = topics["windows"]
        begin, end = bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]
        newest = [parse(record) for record in islice(read_back(bus, topic, end), 2)]
        if not newest:
            return None
        if len(newest) == 2 and newest[0].number != newest[1].number + 1:
            raise out_of_order(bus, topic, newest[0], newest[1].number + 1)
        return cls(bus, topics, parse(next(read_range(bus, topic, begin, end))), newest[0])

    def append(self, record: LedgerRecord) -> None:
        """The stream's learner has written the next one."""
        self.last = record

    @property
    def late_ms(self) -> int | None:
        """The event time (ms) that all windows so far reached to: older features are late in the next one."""
        return self.last.late_ms if self.last.until_ms is None else self.last.until_ms

    def record(self, number: int) -> LedgerRecord:
        """Record `number`. Takes a few reads."""
        return self.last if number == self.last.number else self.complete(parse(self._find(number)))

    def offset(self, number: int) -> int:
        """The offset of record `number`."""
        return self._find(number).offset

    def records(self, first: int = 0, last: int | None = None) -> Iterator[LedgerRecord]:
        """Records `first` to `last`, oldest first; to the newest one without `last`."""
        last = self.last.number if last is None else last
        if first > last:
            return
        start = self.offset(first) if first else self._bus.begin_offsets(self._topic)[0]
        before: LedgerRecord | None = None
        for expected, item in enumerate(read_range(self._bus, self._topic, start, self._end()), first):
            record = parse(item)
            if record.number != expected:
                raise out_of_order(self._bus, self._topic, record, expected)
            before = self.complete(record) if before is None else linked(record, before)
            yield before
            if expected == last:
                return

    def back(self, number: int) -> Iterator[LedgerRecord]:
        """Records `number`, `number` - 1 and so on, not completed; reads hardly more of them than are asked for."""
        end = self._end() if number == self.last.number else self.offset(number) + 1
        for expected, item in zip(range(number, -1, -1), read_back(self._bus, self._topic, end), strict=False):
            record = parse(item)
            if record.number != expected:
                raise out_of_order(self._bus, self._topic, record, expected)
            yield record

    def configuration(self, record: LedgerRecord) -> dict[str, Any]:
        """The configuration a window was learned with: the last one written at or before it."""
        if record.configuration is not None:
            return record.configuration
        number = self.complete(record).configured
        assert number is not None
        if self._configuration[0] != number:
            self._configuration = number, self.record(number).configuration
        document = self._configuration[1]
        if document is None:
            raise BrokenLedger(
                f"{self._bus.url}: record {number} of {self._topic} has no configuration, and later ones "
                "refer to it; restore the topic from a copy"
            )
        return document

    def complete(self, record: LedgerRecord) -> LedgerRecord:
        """A record with what an older version left to the records before it, which are then read backwards."""
        if record.configured is not None or record.number == 0:
            return linked(record, record)
        configured = record.number if record.configuration is not None else None
        late_ms: int | None = None
        for before in self.back(record.number - 1):
            late_ms = before.until_ms if late_ms is None else late_ms
            if configured is None and before.configuration is not None:
                configured = before.number
            if before.configured is not None:
                late_ms = before.late_ms if late_ms is None else late_ms
                configured = before.configured if configured is None else configured
                break
            if configured is not None and late_ms is not None:
                break
        return record.model_copy(update={"configured": configured or 0, "late_ms": late_ms})

    def _end(self) -> int:
        return self._bus.end_offsets(self._topic)[0]

    def _find(self, number: int) -> Record:
        """Record `number`, found by bisection: offsets grow with numbers, faster where transactions were aborted."""
        low, high = self._bus.begin_offsets(self._topic)[0], self._end()
        middle = low + (high - low) * number // (self.last.number + 1)
        while low < high:
            record = next(read_range(self._bus, self._topic, middle, high, 4), None)
            found = None if record is None else parse(record).number
            if record is not None and found == number:
                return record
            if record is None or found is None or found > number:
                high = middle
            else:
                low = record.offset + 1
            middle = (low + high) // 2
        raise BrokenLedger(f"{self._bus.url}: {self._topic} has no record {number}; restore the topic from a copy")


def linked(record: LedgerRecord, before: LedgerRecord) -> LedgerRecord:
    """`record` with what it takes over from the one before it: whose configuration it has, and what was late."""
    if record.configured is not None:
        return record
    if record.number == 0:
        return record.model_copy(update={"configured": 0})
    configured = before.configured if record.configuration is None else record.number
    late_ms = before.late_ms if before.until_ms is None else before.until_ms
    return record.model_copy(update={"configured": configured, "late_ms": late_ms})
