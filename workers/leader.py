"""Leader election: of several workers of a kind, one leads a stream while the others stand by."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from stream_cgzsl.bus import Bus, Lock, Publisher, acls
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable, Cancelled
from stream_cgzsl.runtime.metrics import Metrics

M = TypeVar("M", bound=Metrics)

_JOIN_SECONDS = 1.0
_RETRY_SECONDS = 3.0


class LeaderWorker(ABC, Generic[M]):
    """A worker that works while it holds the lock of its kind, until `stop` is set.

    An unavailable bus is waited for, unless the worker is not `patient`.
    """

    kind: ClassVar[str]
    """Names the lock, the publisher and the log."""

    locked: ClassVar[str]
    """The role of the topic that the lock is on."""

    def __init__(self, bus: Bus, topics: Topics, metrics: M, stop: threading.Event, patient: bool) -> None:
        self._bus = bus
        self._topics = topics
        self._metrics = metrics
        self._stop = stop
        self._patient = patient
        self._lock: Lock | None = None
        self._why_not_ready: str | None = "not connected yet"

    @abstractmethod
    def _lead(self, publisher: Publisher) -> None:
        """The work to do while the lock is held, until `_interrupted`. May raise `Cancelled`."""

    def _stop_leading(self) -> None:
        """Called whenever leading ends, whatever ended it."""

    def why_not_ready(self) -> str | None:
        """A standby is ready too: an orchestrator that waits for it may then replace the leader."""
        return self._why_not_ready

    def run(self) -> None:
        """Leads or stands by until `stop`. A patient worker waits for an unavailable bus; other errors end it."""
        log = logging.getLogger(self.kind)
        acls.require(self._bus, self._topics, self.kind)
        name = f"{self._topics.prefix}.{self.kind}"
        while not self._stop.is_set():
            try:
                with self._bus.lock(name, self._topics[self.locked]) as self._lock:
                    if self._wait_for_lock(self._lock, log):
                        with self._bus.publisher(name) as publisher:
                            self._metrics.rebalances.inc()  # the locked topic was assigned to this worker
                            self._lead(publisher)
            except Cancelled as reason:
                log.info("%s", reason)
            except BusUnavailable as error:
                if not self._patient:
                    raise
                self._why_not_ready = "the bus is unavailable"
                self._metrics.bus_errors.inc()
                log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                self._stop.wait(_RETRY_SECONDS)
            finally:
                self._stop_leading()

    def _wait_for_lock(self, lock: Lock, log: logging.Logger) -> bool:
        """True once the lock is held, False when stopped before."""
        if lock.acquire(_JOIN_SECONDS):
            return True
        self._why_not_ready = None
        log.info("standing by: another %s is leading, or was until a moment ago", self.kind)
        while not self._stop.is_set():
            if lock.acquire(1.0):
                return True
        return False

    def _interrupted(self) -> bool:
        """Stopped, or the lock is lost: another worker may be leading already."""
        return self._stop.is_set() or not self._is_leader()

    def _is_leader(self) -> bool:
        return self._lock is not None and self._lock.held()
