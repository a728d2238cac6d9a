"""Reading from Kafka: chosen partitions from chosen offsets, or a topic as one member of a group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import kafka.errors as errors
from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.structs import MemberState, OffsetAndMetadata

from stream_cgzsl.bus.interface import Reader, Record, Subscription, TopicPartition
from stream_cgzsl.bus.kafka_clients import opened
from stream_cgzsl.bus.kafka_errors import talking, translated
from stream_cgzsl.bus.kafka_joining import go_on_joining
from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.errors import BusUnavailable, Expired, Refused, TopicMissing
from stream_cgzsl.schemas.message import Headers

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 0.5


class Partitions(Protocol):
    """How many partitions a topic has, asked of the cluster. Raises `TopicMissing`, `BusUnavailable` after `patience`."""

    def __call__(self, topic: str, patience: float | None = None) -> int: ...


class _Fetching:
    """Polls a client, and notices what the client keeps to itself: topics that are gone and brokers that are away."""

    def __init__(self, settings: KafkaSettings, client: Any, partitions: Partitions) -> None:
        self._settings = settings
        self._client = client
        self._partitions = partitions
        self._topics: set[str] = set()
        self._heard = time.monotonic()

    def expect(self, topics: Iterable[str]) -> None:
        """From now on these topics are read."""
        self._topics = set(topics)
        self._heard = time.monotonic()

    def poll(self, timeout: float, max_records: int) -> list[Record]:
        try:
            with talking(self._settings, operation="Read"):
                batches = self._client.poll(timeout_ms=int(timeout * 1000), max_records=max_records)
        except UnicodeDecodeError as error:
            raise Refused(
                f"{self._settings.url}: a record of {', '.join(sorted(self._topics))} has a header name that is not UTF-8; "
                "Kafka's protocol forbids that and the client cannot read past it: mend its producer and remove the record"
            ) from error
        if batches:
            self._heard = time.monotonic()
            return [
                Record(topic, partition, r.offset, r.timestamp, r.key, r.value, _headers(r.headers))
                for (topic, partition), records in batches.items()
                for r in records
            ]
        if timeout and time.monotonic() - self._heard > self._settings.patience:
            self._listen(timeout)
        return []

    def _listen(self, timeout: float) -> None:
        """After a long silence, asks whether there is anything to hear."""
        try:
            for topic in self._topics:
                self._partitions(topic, timeout)
        except BusUnavailable:
            if time.monotonic() - self._heard > 2 * self._settings.patience:
                raise
        else:
            self._heard = time.monotonic()


def _headers(headers: list[tuple[str, bytes | None]]) -> Headers:
    """A header without a value is one with an empty value to us."""
    for _, value in headers:
        if value is None:
            return tuple((name, value or b"") for name, value in headers)
    return tuple(headers)  # type: ignore[arg-type]


class KafkaReader(Reader):
    def __init__(
        self,
        settings: KafkaSettings,
        partitions: Partitions,
        first_kept: Callable[[str], dict[int, int]],
        start: Mapping[TopicPartition, int],
        waits: bool = True,
    ) -> None:
        self._settings = settings
        self._first_kept = first_kept
        for topic, number in start:
            count = partitions(topic)
            if number >= count:
                raise TopicMissing(f"{settings.url}: topic {topic!r} has partitions 0 to {count - 1}, not {number}")
        self._client = opened(KafkaConsumer, settings, settings.consumer(waits))
        self._fetching = _Fetching(settings, self._client, partitions)
        self.assign(start)

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        try:
            return self._fetching.poll(timeout, max_records)
        except Expired as error:
            raise self._explained(error) from error

    def _explained(self, error: Expired) -> Expired:
        """The same error with the numbers: what was wanted, and what there is."""
        wanted: Any = getattr(error.__cause__, "args", ({},))[0]
        for tp, offset in wanted.items() if isinstance(wanted, dict) else ():
            first = self._first_kept(tp.topic)[tp.partition]
            where = f"{self._settings.url}: {tp.topic}/{tp.partition}: offset {offset} was asked for and"
            if offset < first:
                return Expired(
                    f"{where} the first one kept is {first}; restore the records, or go on without them on purpose"
                )
            return Expired(f"{where} the log ends before it; was the topic deleted, or its last records lost?")
        return error

    def position(self, partition: TopicPartition) -> int:
        with talking(self._settings, partition.topic):
            position: int = self._client.position(ClientPartition(*partition), timeout_ms=self._settings.patience_ms)
        return position

    def assign(self, start: Mapping[TopicPartition, int]) -> None:
        self._client.assign([ClientPartition(*tp) for tp in start])
        for tp, offset in start.items():
            self._client.seek(ClientPartition(*tp), offset)
        self._fetching.expect(tp.topic for tp in start)

    def close(self) -> None:
        self._client.close()


class KafkaSubscription(Subscription):
    """Partitions move between members without stopping those that stay (cooperative-sticky).

    While the group settles, `poll` may block for half a second where it was given less: the client forgets a join
    that completes between two polls and begins another, and members that hardly wait could do so for ever.
    """

    def __init__(self, settings: KafkaSettings, partitions: Partitions, topic: str, group: str) -> None:
        self._settings = settings
        self._group = group
        self._topic = topic
        partitions(topic)
        self._client = opened(KafkaConsumer, settings, settings.member(group))
        self._client.subscribe([topic])
        self._fetching = _Fetching(settings, self._client, partitions)
        self._fetching.expect([topic])
        self._held: list[Record] = []
        self._committing: Any = None
        self._given: dict[int, int] = {}  # partition -> the offset after the last record given

    def poll(self, timeout: float, max_records: int = 1000) -> list[Record]:
        if self._held:
            records, self._held = self._held[:max_records], self._held[max_records:]
        else:
            if self._client.group_metadata().state != MemberState.STABLE:
                timeout = max(timeout, _SETTLE_SECONDS)
            go_on_joining(self._client)
            records = self._fetching.poll(timeout, max_records)
        for record in records:
            self._given[record.partition] = record.offset + 1
        return records

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        deadline = time.monotonic() + self._settings.patience
        while True:
            mine = self._mine(offsets)
            if not mine:
                return
            try:
                self._client.commit(mine, timeout_ms=self._settings.patience_ms)
                return
            except (errors.RebalanceInProgressError, errors.CommitFailedError) as error:
                if not _rebalancing(error):
                    _log.info("group %s: this member was put out and its offsets are not committed", self._group)
                    return
                if time.monotonic() > deadline:
                    raise translated(error, self._settings, self._topic, "Read") from error
                go_on_joining(self._client)
                self._held += self._fetching.poll(
                    _SETTLE_SECONDS, 1000
                )  # a rebalance comes to its end only while we poll
            except errors.KafkaError as error:
                raise translated(error, self._settings, self._topic, "Read") from error

    def commit_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        former = self._committing
        passing = (errors.RetriableError, errors.RebalanceInProgressError, errors.CommitFailedError)
        if former is not None and former.failed() and not isinstance(former.exception, passing):
            raise translated(former.exception, self._settings, self._topic, "Read")
        mine = self._mine(offsets)
        self._committing = self._client.commit_async(mine) if mine else None

    def _mine(self, offsets: Mapping[TopicPartition, int]) -> dict[Any, OffsetAndMetadata]:
        owned = self.assignment()
        return {ClientPartition(*tp): OffsetAndMetadata(offset) for tp, offset in offsets.items() if tp in owned}

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(TopicPartition(*tp) for tp in self._client.assignment())

    def waiting(self) -> int:
        """As the last fetch of each partition told; of one that has given nothing yet, nothing is known."""
        ends = {tp.partition: self._client.highwater(tp) for tp in self._client.assignment()}
        for moved in self._given.keys() - ends.keys():  # another member reads on there
            del self._given[moved]
        return sum(max(0, end - self._given.get(number, end)) for number, end in ends.items() if end is not None)

    def close(self) -> None:
        self._client.close()


def _rebalancing(error: errors.KafkaError) -> bool:
    """Whether the group is only settling, as opposed to having put this member out."""
    return any(isinstance(part, errors.RebalanceInProgressError) for part in (error, *error.args))
