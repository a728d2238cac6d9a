"""Of some workers one is at work on a stream while others stand by: how these share a lock, and wait for a bus that is away."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from stream_cgzsl.bus import Bus, Lock, Publisher, access
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable, Cancelled
from stream_cgzsl.metrics import Metrics

M = TypeVar("M", bound=Metrics)

_JOIN_SECONDS = 1.0
_RETRY_SECONDS = 3.0


class OneAtWork(ABC, Generic[M]):
    """A worker that works while it holds its kind's lock, until `stop` is set.

    A bus that is away is waited for, unless the worker is not `patient`.
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
    def _work(self, publisher: Publisher) -> None:
        """What to do while the lock is held, until `_interrupted`. May raise `Cancelled`."""

    def _rest(self) -> None:
        """What to do when a turn is over, whatever ended it."""

    def why_not_ready(self) -> str | None:
        """Such a worker is of use at work and also standing by: an orchestrator that replaces one by the other may go on."""
        return self._why_not_ready

    def run(self) -> None:
        """Turn after turn until `stop`. A bus that is away is waited for by the patient; every other error ends the worker."""
        log = logging.getLogger(self.kind)
        access.require(self._bus, self._topics, self.kind)
        name = f"{self._topics.prefix}.{self.kind}"
        while not self._stop.is_set():
            try:
                with self._bus.lock(name, self._topics[self.locked]) as self._lock:
                    if self._wait_for_turn(self._lock, log):
                        with self._bus.publisher(name) as publisher:
                            self._metrics.rebalances.inc()  # the locked topic is this one's now
                            self._work(publisher)
            except Cancelled as reason:
                log.info("%s", reason)
            except BusUnavailable as error:
                if not self._patient:
                    raise
                self._why_not_ready = "the bus is away"
                self._metrics.bus_errors.inc()
                log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                self._stop.wait(_RETRY_SECONDS)
            finally:
                self._rest()

    def _wait_for_turn(self, lock: Lock, log: logging.Logger) -> bool:
        """True once the lock is held, False when told to stop before."""
        if lock.acquire(_JOIN_SECONDS):
            return True
        self._why_not_ready = None
        log.info("standing by: another %s is at work, or was until a moment ago", self.kind)
        while not self._stop.is_set():
            if lock.acquire(1.0):
                return True
        return False

    def _interrupted(self) -> bool:
        """Told to stop, or the lock is gone: another one may be at work already."""
        return self._stop.is_set() or not self._at_work()

    def _at_work(self) -> bool:
        return self._lock is not None and self._lock.held()
