"""Classifying in your own process: the newest generation of a stream, or one from a file.

with Projections.follow("kafka://localhost:9092", prefix="birds") as birds:
    birds.wait(timeout=30)
    [[best, second]] = birds.classify(features, k=2)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_cgzsl import generation_file
from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable, NotReady
from stream_cgzsl.following import Follower
from stream_cgzsl.generation import Array, Generation
from stream_cgzsl.schemas import Genesis

log = logging.getLogger(__name__)

_RETRY_SECONDS = 3.0


Swapping = Callable[[Generation, Genesis, float], None]


class Match(NamedTuple):
    class_id: str
    score: float
    seen: bool


class Projections:
    """Every method may be called from any thread. A call is answered by one generation, whole."""

    def __init__(self, generation: Generation | None = None) -> None:
        self._generation = generation
        self._genesis: Genesis | None = None
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None

    @classmethod
    def load(cls, path: Path | str) -> Projections:
        """From a file made by `stream-cgzsl export`; it never changes. Raises `UsageError`."""
        return cls(generation_file.read(Path(path)))

    @classmethod
    def follow(
        cls,
        url: str,
        prefix: str = "cgzsl",
        topics: Topics | None = None,
        swapping: Swapping = lambda *_: None,
    ) -> Projections:
        """Follows a stream from a thread of its own until closed. Returns at once: see `wait`.

        `swapping` is called from that thread, right before each new generation is made the one that answers, with it, the
        stream's genesis and the seconds it took to load. A bus that is away
        is waited for; every other error ends the following and is raised by the next `wait` or `classify`.
        """
        self = cls()
        names = topics or Topics(prefix)
        self._thread = threading.Thread(target=self._follow, args=(url, names, swapping), name="follow", daemon=True)
        self._thread.start()
        return self

    def _follow(self, url: str, topics: Topics, swapping: Swapping) -> None:
        while not self._stop.is_set():
            try:
                started = time.perf_counter()
                with connect(url) as bus, closing(Follower(bus, topics)) as follower:
                    self._take(follower, swapping, started)
                    while not self._stop.is_set():
                        started = time.perf_counter()
                        if follower.refresh(0.5):
                            self._take(follower, swapping, started)
            except BusUnavailable as error:
                log.warning("%s; trying again in %g s", error, _RETRY_SECONDS)
                self._stop.wait(_RETRY_SECONDS)
            except Exception as error:  # whatever it is: nobody must go on with a generation that is not renewed
                with self._changed:
                    self._problem = error
                    self._changed.notify_all()
                return

    def _take(self, follower: Follower, swapping: Swapping, started: float) -> None:
        generation, genesis = follower.generation, follower.genesis
        if generation is not None and genesis is not None:
            generation.prepare()
            swapping(generation, genesis, time.perf_counter() - started)
        with self._changed:
            self._genesis = genesis or self._genesis
            self._generation = generation or self._generation  # until a reconnection brings one, that from before
            self._changed.notify_all()

    @property
    def generation(self) -> Generation | None:
        """The newest whole generation, servable or not; None before the first."""
        return self._generation

    @property
    def genesis(self) -> Genesis | None:
        """What the stream fixed for ever; None before that is known, and for a file."""
        return self._genesis

    def wait(self, timeout: float) -> bool:
        """Waits for a generation, up to `timeout` seconds; True when there is one. Raises what ended the following."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self._raise_problem()
            while self.generation is None:
                self._raise_problem()
                left = deadline - time.monotonic()
                if left <= 0 or self._stop.is_set():
                    return False
                self._changed.wait(min(left, 0.5))
        return True

    def classify(self, features: Array, k: int = 1) -> list[list[Match]]:
        """The k best classes of each row of [rows, features] (or of one feature), best first.

        Raises `NotReady` while no generation can answer, and `ValueError` for rows of the wrong length.
        """
        self._raise_problem()
        generation = self.generation
        if generation is None or not generation.servable:
            raise NotReady("no generation can answer yet: describe classes, send features, close a window; or wait()")
        rows = np.atleast_2d(np.asarray(features))
        if rows.shape[1] != generation.vectors.shape[1]:
            raise ValueError(f"features have {rows.shape[1]} numbers, this stream's have {generation.vectors.shape[1]}")
        ranking = generation.classify(rows, k)
        return [
            [
                Match(generation.class_ids[i], score, bool(generation.seen[i]))
                for i, score in zip(ids, scores, strict=True)
            ]
            for ids, scores in zip(ranking.indices.tolist(), ranking.scores.tolist(), strict=True)
        ]

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    def close(self) -> None:
        """Ends the following; what is loaded can still be asked."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def __enter__(self) -> Projections:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
