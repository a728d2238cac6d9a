"""Writing to Kafka: records one by one, or many that become visible together."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import kafka.errors as errors
from kafka import KafkaProducer
from kafka import TopicPartition as ClientPartition
from kafka.structs import OffsetAndMetadata

from stream_cgzsl.bus.interface import Publisher, Receipt, TopicPartition, Writer
from stream_cgzsl.bus.kafka_clients import opened
from stream_cgzsl.bus.kafka_errors import indefinite, translated
from stream_cgzsl.bus.kafka_reading import Partitions
from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.errors import BusUnavailable, CgzslError, Fenced, TopicMissing
from stream_cgzsl.schemas.message import Message

_UNDERWAY_BYTES = 16 * 1024 * 1024
_OVERHEAD_BYTES = 100
_GRACE_SECONDS = 5.0
_LOOK_UP_SECONDS = 1.0
_CLOSE_SECONDS = 5.0
_LOOK_SECONDS = 0.005
_log = logging.getLogger(__name__)

Ends = Callable[[str], dict[int, int]]
"""Per partition of a topic, the offset after the last record a reader can see."""


class _Outbox:
    """Messages handed to a client and not yet acknowledged; the client itself would take any number of them.

    `last`, where it is kept, has the highest offset acknowledged in each partition since `forget`.
    """

    def __init__(self, settings: KafkaSettings, client: Any, partitions: Partitions, keep_last: bool = False) -> None:
        self._settings = settings
        self._client = client
        self._look_up = partitions
        self._counts: dict[str, int] = {}
        self._underway: deque[tuple[Receipt, Any, str, int]] = deque()
        self._bytes = 0
        self._keep_last = keep_last
        self.last: dict[ClientPartition, int] = {}

    def send(self, topic: str, message: Message, partition: int | None) -> Receipt:
        if partition is not None or topic not in self._counts:
            self._check(topic, partition or 0)
        key, value, headers, timestamp_ms = message
        size = _OVERHEAD_BYTES
        if value is not None:
            size += len(value)
        elif key is None:
            value = b""  # the client wants one of the two; an empty value means the same
        try:
            future = self._client.send(topic, value, key, list(headers), partition, timestamp_ms)
        except errors.KafkaError as error:
            raise translated(error, self._settings, topic, "Write") from error
        receipt = Receipt()
        self._underway.append((receipt, future, topic, size))
        self._bytes += size
        if self._bytes > _UNDERWAY_BYTES:
            self._wait_until(_UNDERWAY_BYTES // 2)
        return receipt

    def _check(self, topic: str, partition: int) -> None:
        """Asks about a topic that is new to us, or that must have grown since we asked."""
        if 0 <= partition < self._counts.get(topic, 0):
            return
        count = self._counts[topic] = self._look_up(topic)
        if not 0 <= partition < count:
            raise TopicMissing(
                f"{self._settings.url}: topic {topic!r} has partitions 0 to {count - 1}, not {partition}"
            )

    def flush(self) -> None:
        """Waits for every acknowledgement and raises the first failure."""
        if not self._underway:
            return
        deadline = time.monotonic() + self._settings.patience + _GRACE_SECONDS
        with suppress(errors.KafkaTimeoutError):  # each record's own answer, below, says more
            self._client.flush(self._settings.patience + _GRACE_SECONDS)
        self._wait_until(0, deadline)

    def _wait_until(self, left: int, deadline: float | None = None) -> None:
        """Takes the oldest answers until at most `left` bytes are under way, then raises the first failure of them."""
        if deadline is None:  # for all of them together: many records must not be waited for one after the other
            deadline = time.monotonic() + self._settings.patience + _GRACE_SECONDS
        self._take_while(lambda: self._bytes > left, deadline)

    def take_known(self) -> None:
        """Takes the answers that have come, up to the first that has not; raises the first failure of them."""
        self._take_while(lambda: self._underway[0][1].is_done, 0.0)

    def _take_while(self, more: Callable[[], bool], deadline: float) -> None:
        first: tuple[errors.KafkaError, str] | None = None
        while self._underway and more():
            failed = self._take(deadline)
            first = first or failed
        if first is not None:
            raise self._failure(*first)

    def _take(self, deadline: float) -> tuple[errors.KafkaError, str] | None:
        """Takes the oldest answer. Returns what went wrong with it, and its topic."""
        receipt, future, topic, size = self._underway.popleft()
        self._bytes -= size
        if future.is_done and future.exception is None:
            answer = future.value
        else:
            try:
                answer = future.get(max(0.0, deadline - time.monotonic()))
            except errors.KafkaError as error:
                return error, topic
        receipt.partition = answer.partition
        receipt.offset = answer.offset
        if self._keep_last:
            self.last[answer.topic_partition] = answer.offset
        return None

    def _failure(self, error: errors.KafkaError, topic: str) -> CgzslError:
        """A topic deleted under way looks like a timeout: the client waits for it to come back."""
        failure = translated(error, self._settings, topic, "Write")
        if isinstance(failure, BusUnavailable):
            try:
                self._look_up(topic, _LOOK_UP_SECONDS)
            except TopicMissing as gone:
                self._counts.pop(topic, None)
                failure = gone
            except CgzslError:
                pass  # then the first error says it
        failure.__cause__ = error
        return failure

    def forget(self) -> None:
        self._underway.clear()
        self._bytes = 0
        self.last.clear()


class KafkaWriter(Writer):
    """The client sends in the background; at most 16 MiB are under way before `send` waits."""

    def __init__(self, settings: KafkaSettings, partitions: Partitions) -> None:
        self._client = opened(KafkaProducer, settings, settings.producer())
        self._outbox = _Outbox(settings, self._client, partitions)

    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        return self._outbox.send(topic, message, partition)

    def push(self) -> None:
        """The client sends after a few milliseconds by itself."""
        self._outbox.take_known()

    def flush(self) -> None:
        self._outbox.flush()

    def close(self) -> None:
        """Flushes first, and closes whatever comes of that."""
        try:
            self._outbox.flush()
        finally:
            _close(self._client)


class KafkaPublisher(Publisher):
    """A transactional producer whose id is the publisher's name. After any failure but an aborted send it is spent."""

    def __init__(self, settings: KafkaSettings, partitions: Partitions, ends: Ends, name: str) -> None:
        self._settings = settings
        self._ends = ends
        self._name = name
        self._open = False
        self._spent: CgzslError | None = None
        self._client = opened(KafkaProducer, settings, settings.publisher(name))
        self._outbox = _Outbox(settings, self._client, partitions, keep_last=True)
        try:
            self._client.init_transactions()
        except BaseException as error:
            _close(self._client)
            if not isinstance(error, errors.KafkaError):
                raise
            raise self._translated(error) from error

    def begin(self) -> None:
        if self._spent is not None:
            raise self._spent
        if self._open:
            raise RuntimeError("begin inside a transaction: call commit() or abort() first")
        try:
            self._client.begin_transaction()
        except errors.KafkaError as error:
            raise self._ended(self._translated(error)) from error
        self._open = True

    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        self._require_open("send")
        try:
            return self._outbox.send(topic, message, partition)
        except (Fenced, BusUnavailable) as error:
            raise self._ended(error) from error.__cause__

    def flush(self) -> None:
        self._require_open("flush")
        try:
            self._outbox.flush()
        except (Fenced, BusUnavailable) as error:
            raise self._ended(error) from error.__cause__

    def commit(self, group: str | None = None, consumed: Mapping[TopicPartition, int] | None = None) -> None:
        self.flush()
        if group is not None and consumed:
            offsets = {ClientPartition(*tp): OffsetAndMetadata(offset) for tp, offset in consumed.items()}
            self._do(self._client.send_offsets_to_transaction, offsets, group)
        self._do(self._client.commit_transaction)
        self._open = False
        self._wait_until_visible()

    def _wait_until_visible(self) -> None:
        """The cluster has decided when the commit returns; its partitions learn of it one after the other."""
        deadline = time.monotonic() + self._settings.patience
        for topic in {tp.topic for tp in self._outbox.last}:
            last = {tp.partition: offset for tp, offset in self._outbox.last.items() if tp.topic == topic}
            while any(end <= last.get(partition, -1) for partition, end in self._ends(topic).items()):
                if time.monotonic() > deadline:
                    _log.warning("%s: committed, but hidden behind another publisher's open transaction", topic)
                    break
                time.sleep(_LOOK_SECONDS)
        self._outbox.forget()

    def abort(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            self._do(self._client.abort_transaction)
        except Fenced:
            pass  # whoever fenced us has aborted it
        finally:
            self._outbox.forget()

    def close(self) -> None:
        try:
            self.abort()
        except BusUnavailable:
            pass  # the broker aborts it when the transaction's time is up, or when a newer publisher comes
        finally:
            _close(self._client)

    def _require_open(self, what: str) -> None:
        if not self._open:
            raise self._spent or RuntimeError(f"{what} outside a transaction: call begin() first")

    def _ended(self, error: CgzslError) -> CgzslError:
        self._spent = error
        self._open = False
        self._outbox.forget()
        return error

    def _do(self, call: Callable[..., None], *arguments: Any) -> None:
        """A transactional call, with the end to waiting that the client does not give it."""
        outcome: list[BaseException] = []

        def run() -> None:
            try:
                call(*arguments)
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=run, name="kafka-transaction", daemon=True)
        thread.start()
        thread.join(self._settings.patience)
        if thread.is_alive():
            raise self._ended(indefinite(self._settings, self._name))
        for error in outcome:
            if not isinstance(error, errors.KafkaError):
                raise error
            raise self._ended(self._translated(error)) from error

    def _translated(self, error: errors.KafkaError) -> CgzslError:
        """What is refused here besides the transactional id is a group's offsets, which needs Read on their topics."""
        if isinstance(error, errors.TransactionalIdAuthorizationFailedError):
            error = errors.TransactionalIdAuthorizationFailedError(self._name)  # the client's own names nobody
        return translated(error, self._settings, operation="Read")


def _close(client: Any) -> None:
    """Closes a producer within a few seconds, also one whose broker is away and whose records nobody will take."""
    try:
        client.close(timeout=_CLOSE_SECONDS)
    except errors.KafkaTimeoutError:
        client._sender.force_close()  # the client's own close stops at its failed flush
