"""A lock on Kafka: its holder is the member of a group that owns the group's only partition."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from kafka import KafkaConsumer

from stream_cgzsl.bus.interface import Lock
from stream_cgzsl.bus.kafka.clients import open_client, resume_join
from stream_cgzsl.bus.kafka.contact import PartitionCount
from stream_cgzsl.bus.kafka.errors import translating
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.errors import BusUnavailable, CgzslError

log = logging.getLogger(__name__)


class KafkaLock(Lock):
    """A thread polls to stay in the group. Assignment is cooperative-sticky: a holder that is alive keeps the lock."""

    def __init__(self, settings: KafkaSettings, partition_count: PartitionCount, group: str, topic: str) -> None:
        self._settings = settings
        self._partition_count = partition_count
        self._group = group
        self._topic = topic
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._owned = False
        self._failure: CgzslError | None = None
        self._thread: threading.Thread | None = None

    def acquire(self, timeout: float) -> bool:
        if self._thread is None:
            self._partition_count(self._topic)  # raises if it is missing or hidden: a member would just wait forever
            self._thread = threading.Thread(target=self._stay_member, name="lock", daemon=True)
            self._thread.start()
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self.held():
                if self._failure is not None:
                    failure, self._failure, self._thread = self._failure, None, None
                    raise failure
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.2))
        return True

    def held(self) -> bool:
        """As last reported by the cluster. While the cluster is down, nobody else can acquire the lock either.

        A holder that alone has lost its connection is fenced, and learns that the lock is lost when it reconnects.
        """
        return self._owned

    def _stay_member(self) -> None:
        try:
            consumer = open_client(KafkaConsumer, self._settings, self._settings.member(self._group))
            try:
                consumer.subscribe([self._topic])
                while not self._closing.is_set():
                    with translating(self._settings, self._topic, "Read"):
                        self._poll(consumer)
            finally:
                self._owned = False
                consumer.close()
        except CgzslError as error:
            self._fail(error)
        except Exception as error:  # `acquire` must raise whatever ends this thread
            self._fail(BusUnavailable(f"{self._settings.url}: lost the membership of group {self._group!r}: {error!r}"))

    def _poll(self, consumer: Any) -> None:
        resume_join(consumer)
        consumer.poll(timeout_ms=200, max_records=1)
        assigned = consumer.assignment()
        if assigned:
            consumer.pause(*assigned)  # the holder reads the records with a reader
        with self._changed:
            if self._owned != bool(assigned):
                log.info("%s the lock %r", "holding" if assigned else "waiting for", self._group)
            self._owned = bool(assigned)
            self._changed.notify_all()

    def _fail(self, error: CgzslError) -> None:
        with self._changed:
            self._owned, self._failure = False, error
            self._changed.notify_all()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=10.0)
            self._thread = None
