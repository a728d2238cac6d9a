"""Following a stream's generations: load the newest complete one whenever the ledger grows, and swap it in."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Generic, TypeVar

from stream_cgzsl.bus import Bus, TopicPartition, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas import Genesis, LedgerRecord
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import GenerationLoader
from stream_cgzsl.windows import ledger

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_RETRY_SECONDS = 3.0

T = TypeVar("T")


class Follower:
    """Tails the ledger. Starting costs a bounded number of generations, however long the ledger is.

    `newest` is the newest generation of the ledger, `generation` the newest one that could be loaded. One whose records
    are not all there, or have been replaced, is tried again until it is whole or there is a newer one.
    """

    def __init__(self, bus: Bus, topics: Topics) -> None:
        self._bus = bus
        self._topics = topics
        self._loader = GenerationLoader(bus, topics)
        self._waiting: LedgerRecord | None = None  # its generation is not complete
        self._retry_at = 0.0
        self.newest = 0
        self.genesis: Genesis | None = None
        last, end = ledger.read_last(bus, topics)
        self._reader = bus.reader({TopicPartition(topics["windows"], 0): end})
        if last is not None:
            self._take(last)

    @property
    def generation(self) -> Generation | None:
        return self._loader.generation

    def refresh(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for a new window; True when there is a new generation."""
        records = self._reader.poll(timeout)
        if records:
            return self._take(ledger.parse(records[-1]))
        if self._waiting is not None and time.monotonic() >= self._retry_at:
            return self._take(self._waiting)
        return False

    def _take(self, record: LedgerRecord) -> bool:
        if self.genesis is None:
            self.genesis = record.genesis or ledger.read_genesis(self._bus, self._topics)
        if record.generation is None:
            return False
        self.newest = record.number
        try:
            self._loader.load(record)
        except ledger.Incomplete as reason:
            if self._waiting is None or self._waiting.number != record.number:
                log.warning("generation %d is not complete (%s); trying again", record.number, reason)
            self._waiting, self._retry_at = record, time.monotonic() + _RETRY_SECONDS
            return False
        self._waiting = None
        return True

    def close(self) -> None:
        self._reader.close()


class Followed(Generic[T]):
    """The one holder of the newest generation in a process: follows a stream from a thread until closed.

    `build(generation, genesis, seconds)` makes from each new generation what answers need, in the thread that follows;
    the result becomes `current`, swapped in as a whole. `seconds` is how long loading took. A bus that is unavailable
    is waited for; every other error ends the following and is raised by `check` and `wait`.
    """

    def __init__(self, url: str, topics: Topics, build: Callable[[Generation, Genesis, float], T]) -> None:
        self.current: T | None = None
        self.genesis: Genesis | None = None
        self.newest = 0  # the newest generation of the ledger, loaded or not
        self._build = build
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._follow, args=(url, topics), name="follow", daemon=True)
        self._thread.start()

    def _follow(self, url: str, topics: Topics) -> None:
        while not self._stop.is_set():
            try:
                started = time.perf_counter()
                with connect(url) as bus, closing(Follower(bus, topics)) as follower:
                    self.newest = follower.newest
                    self._swap(follower, started)
                    while not self._stop.is_set():
                        started = time.perf_counter()
                        changed = follower.refresh(_POLL_SECONDS)
                        self.newest = follower.newest
                        if changed:
                            self._swap(follower, started)
            except BusUnavailable as error:
                log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                self._stop.wait(_RETRY_SECONDS)
            except Exception as error:  # any error: nobody must go on with a generation that is never renewed
                with self._changed:
                    self._problem = error
                    self._changed.notify_all()
                return

    def _swap(self, follower: Follower, started: float) -> None:
        generation, genesis = follower.generation, follower.genesis
        current = self.current  # after a reconnection that found none, the one from before stays
        if generation is not None and genesis is not None:
            generation.prepare()
            current = self._build(generation, genesis, time.perf_counter() - started)
        with self._changed:
            self.genesis = genesis or self.genesis
            self.current = current
            self._changed.notify_all()

    def wait(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for a first generation; True when there is one."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self.check()
            while self.current is None:
                left = deadline - time.monotonic()
                if left <= 0 or self._stop.is_set():
                    return False
                self._changed.wait(min(left, _POLL_SECONDS))
                self.check()
        return True

    def check(self) -> None:
        """Raises what ended the following, if anything did."""
        if self._problem is not None:
            raise self._problem

    def close(self) -> None:
        """Ends the following; `current` stays."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(timeout=5.0)
