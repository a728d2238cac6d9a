"""Writes to Kafka: single records, or records in a transaction."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import kafka.errors as errors
from kafka import KafkaProducer
from kafka import TopicPartition as ClientPartition
from kafka.structs import OffsetAndMetadata

from stream_cgzsl.bus.interface import Publisher, Writer
from stream_cgzsl.bus.kafka.clients import close_producer, open_client
from stream_cgzsl.bus.kafka.contact import PartitionCount
from stream_cgzsl.bus.kafka.errors import outcome_unknown, translate, unwrapped
from stream_cgzsl.bus.kafka.outbox import Outbox
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.bus.types import Receipt, TopicPartition
from stream_cgzsl.errors import BusUnavailable, CgzslError, Fenced
from stream_cgzsl.schemas.message import Message

_POLL_SECONDS = 0.005
_log = logging.getLogger(__name__)


class KafkaWriter(Writer):
    """The client sends in the background; `send` blocks while more than 16 MiB are unacknowledged."""

    def __init__(self, settings: KafkaSettings, partition_count: PartitionCount) -> None:
        self._producer = open_client(KafkaProducer, settings, settings.producer())
        self._outbox = Outbox(settings, self._producer, partition_count)

    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        return self._outbox.send(topic, message, partition)

    def push(self) -> None:
        """Only collects results: the client sends by itself after a few milliseconds."""
        self._outbox.collect_done()

    def flush(self) -> None:
        self._outbox.flush()

    def close(self) -> None:
        """Flushes, then closes even if that failed."""
        try:
            self._outbox.flush()
        finally:
            close_producer(self._producer)


class KafkaPublisher(Publisher):
    """A transactional producer with the publisher's name as its id. Any error but a rejected message ends its use."""

    def __init__(
        self,
        settings: KafkaSettings,
        partition_count: PartitionCount,
        end_offsets: Callable[[str], dict[int, int]],
        name: str,
    ) -> None:
        self._settings = settings
        self._end_offsets = end_offsets
        self._name = name
        self._open = False
        self._failure: CgzslError | None = None
        self.timeout_seconds = settings.transaction_timeout_ms / 1000
        self._producer = open_client(KafkaProducer, settings, settings.publisher(name))
        self._outbox = Outbox(settings, self._producer, partition_count, publisher=name)
        try:
            self._producer.init_transactions()
        except BaseException as error:
            close_producer(self._producer)
            if not isinstance(error, errors.KafkaError):
                raise
            raise self._translate(error, in_transaction=False) from error

    def begin(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._open:
            raise RuntimeError("begin inside a transaction: call commit() or abort() first")
        try:
            self._producer.begin_transaction()
        except errors.KafkaError as error:
            raise self._fail(self._translate(error)) from error
        self._open = True

    def send(self, topic: str, message: Message, partition: int | None = None) -> Receipt:
        self._require_open("send")
        try:
            return self._outbox.send(topic, message, partition)
        except (Fenced, BusUnavailable) as error:
            raise self._fail(error) from error.__cause__

    def flush(self) -> None:
        self._require_open("flush")
        try:
            self._outbox.flush()
        except (Fenced, BusUnavailable) as error:
            raise self._fail(error) from error.__cause__

    def commit(self, group: str | None = None, consumed: Mapping[TopicPartition, int] | None = None) -> None:
        self.flush()
        if group is not None and consumed:
            offsets = {ClientPartition(*tp): OffsetAndMetadata(offset) for tp, offset in consumed.items()}
            self._call(self._producer.send_offsets_to_transaction, offsets, group)
        self._call(self._producer.commit_transaction)
        self._open = False
        self._wait_until_visible()

    def _wait_until_visible(self) -> None:
        """The client's commit returns once the transaction is decided; the partitions show it a little later."""
        deadline = time.monotonic() + self._settings.patience
        for topic in {tp.topic for tp in self._outbox.last}:
            last = {tp.partition: offset for tp, offset in self._outbox.last.items() if tp.topic == topic}
            while any(end <= last.get(partition, -1) for partition, end in self._end_offsets(topic).items()):
                if time.monotonic() > deadline:
                    _log.warning("%s: committed, but hidden behind another publisher's open transaction", topic)
                    break
                time.sleep(_POLL_SECONDS)
        self._outbox.clear()

    def abort(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            self._call(self._producer.abort_transaction)
        except Fenced:
            pass  # the newer publisher has aborted it
        finally:
            self._outbox.clear()

    def close(self) -> None:
        try:
            self.abort()
        except BusUnavailable:
            pass  # the broker aborts it after the transaction timeout, or when a newer publisher opens
        finally:
            close_producer(self._producer)

    def _require_open(self, method: str) -> None:
        if not self._open:
            raise self._failure or RuntimeError(f"{method} outside a transaction: call begin() first")

    def _fail(self, error: CgzslError) -> CgzslError:
        self._failure = error
        self._open = False
        self._outbox.clear()
        return error

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        """Calls a transactional method of the client with a timeout, which the client does not offer."""
        raised: list[BaseException] = []

        def run() -> None:
            try:
                method(*arguments)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, name="kafka-transaction", daemon=True)
        thread.start()
        thread.join(self._settings.patience)
        if thread.is_alive():
            raise self._fail(outcome_unknown(self._settings, self._name))
        for error in raised:
            if isinstance(error, errors.KafkaError):
                raise self._fail(self._translate(error)) from error
            if isinstance(error, Exception):  # the client found itself in a state that it has no error for
                raise self._fail(outcome_unknown(self._settings, self._name, error)) from error
            raise error

    def _translate(self, error: errors.KafkaError, in_transaction: bool = True) -> CgzslError:
        """Only the transactional id or a group's offsets can be denied here; the latter need Read on their topics."""
        if isinstance(unwrapped(error), errors.TransactionalIdAuthorizationFailedError):
            error = errors.TransactionalIdAuthorizationFailedError(self._name)  # the client's own names no id
        publisher = self._name if in_transaction else None
        return translate(error, self._settings, operation="Read", publisher=publisher)
