"""One holder a group: whoever owns the group's only partition. Kept by a thread that does nothing but poll."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from kafka import KafkaConsumer

from stream_cgzsl.bus.interface import Lock
from stream_cgzsl.bus.kafka_clients import opened
from stream_cgzsl.bus.kafka_errors import talking
from stream_cgzsl.bus.kafka_joining import go_on_joining
from stream_cgzsl.bus.kafka_reading import Partitions
from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.errors import BusUnavailable, CgzslError

log = logging.getLogger(__name__)


class KafkaLock(Lock):
    """Cooperative-sticky: a standby that joins never takes the partition from a holder that is alive."""

    def __init__(self, settings: KafkaSettings, partitions: Partitions, group: str, topic: str) -> None:
        self._settings = settings
        self._look_up = partitions
        self._group = group
        self._topic = topic
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._owned = False
        self._failure: CgzslError | None = None
        self._thread: threading.Thread | None = None

    def acquire(self, timeout: float) -> bool:
        if self._thread is None:
            self._look_up(self._topic)  # a member whose topic is missing or hidden would wait for ever, in silence
            self._thread = threading.Thread(target=self._keep, name="lock", daemon=True)
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
        """As the cluster last said. While it is away nobody else can hold the lock either; whoever is cut off from it
        alone is fenced, and hears that the lock is lost as soon as it hears anything.
        """
        return self._owned

    def _keep(self) -> None:
        try:
            client = opened(KafkaConsumer, self._settings, self._settings.member(self._group))
            try:
                client.subscribe([self._topic])
                while not self._closing.is_set():
                    with talking(self._settings, self._topic, "Read"):
                        self._poll(client)
            finally:
                self._owned = False
                client.close()
        except CgzslError as error:
            self._end(error)
        except Exception as error:  # whatever ends this thread must reach the one that waits for it
            self._end(BusUnavailable(f"{self._settings.url}: the membership of {self._group!r} was lost: {error!r}"))

    def _poll(self, client: Any) -> None:
        go_on_joining(client)
        client.poll(timeout_ms=200, max_records=1)
        assigned = client.assignment()
        if assigned:
            client.pause(*assigned)  # the records are for the holder's own reader
        with self._changed:
            if self._owned != bool(assigned):
                log.info("%s the lock %r", "holding" if assigned else "waiting for", self._group)
            self._owned = bool(assigned)
            self._changed.notify_all()

    def _end(self, error: CgzslError) -> None:
        with self._changed:
            self._owned, self._failure = False, error
            self._changed.notify_all()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=10.0)
            self._thread = None
