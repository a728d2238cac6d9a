"""Classifying in your own process: the newest generation of a stream, or one from a file.

with Projections.follow("kafka://localhost:9092", prefix="birds") as birds:
    birds.wait(timeout=30)
    [[best, second]] = birds.classify(features, k=2)
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import NotReady
from stream_cgzsl.schemas import Array, Genesis
from stream_cgzsl.serving import file
from stream_cgzsl.serving.follower import Followed
from stream_cgzsl.serving.generation import Generation


class Match(NamedTuple):
    class_id: str
    score: float
    seen: bool


class Projections:
    """Every method may be called from any thread. A call is answered by one complete generation."""

    def __init__(self, generation: Generation | None = None, followed: Followed[Generation] | None = None) -> None:
        self._generation = generation
        self._followed = followed

    @classmethod
    def load(cls, path: Path | str) -> Projections:
        """From a file made by `stream-cgzsl export`; it never changes. Raises `UsageError`."""
        return cls(generation=file.read(Path(path)))

    @classmethod
    def follow(cls, url: str, prefix: str = "cgzsl", topics: Topics | None = None) -> Projections:
        """Follows a stream from a thread of its own until closed. Returns at once: see `wait`.

        A bus that is unavailable is waited for; every other error ends the following and is raised by the next `wait`
        or `classify`.
        """
        return cls(followed=Followed(url, topics or Topics(prefix), lambda generation, *_: generation))

    @property
    def generation(self) -> Generation | None:
        """The newest complete generation, servable or not; None before the first."""
        return self._generation if self._followed is None else self._followed.current

    @property
    def genesis(self) -> Genesis | None:
        """What is fixed for the stream's whole life; None before that is known, and for a file."""
        return None if self._followed is None else self._followed.genesis

    def wait(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for a generation; True when there is one. Raises what ended the following."""
        return self._generation is not None if self._followed is None else self._followed.wait(timeout)

    def classify(self, features: Array, k: int = 1) -> list[list[Match]]:
        """The k best classes of each row of [rows, features] (or of one feature), best first.

        Raises `NotReady` while no generation can answer, and `ValueError` for rows of the wrong length.
        """
        if self._followed is not None:
            self._followed.check()
        generation = self.generation
        if generation is None or not generation.servable:
            raise NotReady("no generation can answer yet: describe classes, send features, close a window; or wait()")
        rows = np.atleast_2d(np.asarray(features))
        if rows.shape[1] != generation.features:
            raise ValueError(f"features have {rows.shape[1]} numbers, this stream's have {generation.features}")
        ranking = generation.classify(rows, k)
        return [
            [
                Match(generation.class_ids[i], score, bool(generation.seen[i]))
                for i, score in zip(ids, scores, strict=True)
            ]
            for ids, scores in zip(ranking.indices.tolist(), ranking.scores.tolist(), strict=True)
        ]

    def close(self) -> None:
        """Ends the following; the last generation can still be asked."""
        if self._followed is not None:
            self._followed.close()

    def __enter__(self) -> Projections:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
