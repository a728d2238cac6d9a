"""A stream with hand-made generations and holdout rows, and its evaluations computed in a simple, slow way."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers import GENESIS, InThread, Producer, read, settings_for
from patience import until

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.runtime.metrics import EvaluatorMetrics
from stream_cgzsl.schemas import Evaluation, Holdout, LedgerRecord, Range, decode
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows.commit import Commit, write_commit
from stream_cgzsl.workers.evaluator import EvaluatorWorker

HoldoutRow = tuple[str, str | None, Any]
"""Class, id and vector."""


def made(number: int, classes: str, seen: str, servable: bool = True, seed: int = 0) -> Generation:
    """Classes are letters; the n-th letter of `seen` has had 5n + 1 examples.

    Projections of one class have about the same direction in every generation.
    """
    rng = np.random.default_rng([seed, number])
    vectors = np.stack([axis(c) for c in classes]) + 0.6 * rng.normal(size=(len(classes), 16)).astype(np.float32)
    flags = np.array([c in seen for c in classes])
    biases = (0.2 * flags).astype(np.float32)
    counts = np.array([5 * seen.index(c) + 1 if c in seen else 0 for c in classes])
    return Generation(
        number, tuple(classes), flags, vectors, biases, np.zeros(16, np.float32), servable=servable, examples=counts
    )


def axis(class_id: str) -> Any:
    return np.eye(16, dtype=np.float32)[ord(class_id) - ord("a")]


def rows_of(class_id: str, count: int, tag: str = "") -> list[HoldoutRow]:
    """Holdout rows around the axis of a class, with ids."""
    rng = np.random.default_rng([ord(class_id), count])
    noise = np.abs(rng.normal(size=(count, 16))).astype(np.float32)
    return [(class_id, f"{tag}{class_id}{n}", axis(class_id) + 0.5 * row) for n, row in enumerate(noise)]


@dataclass
class Stream:
    bus: Bus
    topics: Topics
    generations: list[Generation] = field(default_factory=list)
    tested: list[list[HoldoutRow]] = field(default_factory=list)  # the valid rows before the cut of each generation
    rows: list[HoldoutRow] = field(default_factory=list)

    @property
    def producer(self) -> Producer:
        return Producer(self.bus, self.topics)

    def hold_out(self, *rows: HoldoutRow, partition: int | None = None) -> None:
        self.rows += rows
        events = (Holdout(class_id=c, id=id, vector=vector) for c, id, vector in rows)
        self.producer.events("holdout", *events, partition=partition)

    def commit(self, generation: Generation | None = None, kind: str = "train", to: int | None = None) -> None:
        """Commits a window with that generation and all of the holdout so far; without one it is the genesis."""
        record = LedgerRecord(
            number=0 if generation is None else generation.number,
            kind="genesis" if generation is None else kind,
            reason="test",
            genesis=GENESIS if generation is None else None,
            ranges={"control": {0: Range(start=0, end=0)}},
            holdout=self.bus.end_offsets(self.topics["holdout"]),
            configuration_digest="0" * 64,
            code="0",
            to=to,
        )
        if generation is not None:
            self.generations.append(generation)
            self.tested.append(list(self.rows))
        with self.bus.publisher(f"{self.topics.prefix}.learner") as publisher:
            commit = Commit(record) if generation is None else commit_of(record, generation)
            write_commit(publisher, self.topics, commit)

    def evaluator(self, **settings: Any) -> InThread:
        return InThread(EvaluatorWorker, settings_for(self.bus, self.topics, **settings), EvaluatorMetrics())

    def evaluations(self) -> list[Evaluation]:
        records = read(self.bus, self.topics["evaluations"])
        return [e for r in records if isinstance(e := decode("evaluations", r.key, r.value, r.headers), Evaluation)]

    def wait_for(self, number: int, alive: Callable[[], Any] = lambda: None) -> list[Evaluation]:
        """All evaluations, as soon as generation `number` is evaluated."""
        found: list[Evaluation] = []

        def evaluated() -> bool:
            nonlocal found
            alive()
            found = self.evaluations()
            return bool(found) and found[-1].generation >= number

        until(evaluated, f"the evaluation of generation {number}")
        return found

    def evaluate_until(self, number: int, **settings: Any) -> list[Evaluation]:
        """Runs an evaluator until generation `number` is evaluated."""
        with self.evaluator(**settings) as worker:
            return self.wait_for(number, worker.alive)

    def expected(self) -> list[Any]:
        """The evaluations there must be, one per generation."""
        best: dict[str, float] = {}
        found = []
        before: Generation | None = None
        for generation, rows in zip(self.generations, self.tested, strict=True):
            evaluation = evaluated_slowly(generation, before, rows, best)
            best, before = dict(evaluation["best"]), generation
            found.append(evaluation)
        return found

    def remove_projection(self, number: int) -> None:
        """Removes the first projection of a generation from a SQLite bus, as compaction would."""
        with closing(sqlite3.connect(self.bus.url.removeprefix("sqlite:///"))) as db, db:
            topic = self.topics["projections"]
            (place,) = db.execute("SELECT id FROM partitions WHERE topic = ?", (topic,)).fetchone()
            first = sum(len(g.class_ids) for g in self.generations if g.number < number)
            db.execute("DELETE FROM records WHERE place = ?", ((place << 40) + first,))


def evaluated_slowly(
    generation: Generation, before: Generation | None, rows: list[HoldoutRow], best: Mapping[str, float]
) -> Any:
    """An evaluation that uses none of the code it is compared with, except `Generation.scores`."""
    known = dict(zip(generation.class_ids, generation.seen.tolist(), strict=True))
    firsts = {id or f"none {n}": row for n, row in reversed(list(enumerate(rows))) for id in [row[1]]}
    asked = [(c, vector) for c, _, vector in firsts.values() if c in known and generation.servable]
    scores = [(c, generation.scores(vector)[0]) for c, vector in asked]

    def accuracies(offset: float) -> dict[str, float]:
        shift = np.where(generation.seen, 0.0, offset)
        right: dict[str, list[bool]] = {}
        for class_id, given in scores:
            right.setdefault(class_id, []).append(generation.class_ids[int((given + shift).argmax())] == class_id)
        return {c: float(np.mean(right[c])) for c in sorted(right)}

    def means(offset: float) -> list[Any]:
        now = accuracies(offset)
        groups = ([share for c, share in now.items() if known[c] is flag] for flag in (True, False))
        return [float(np.mean(group)) if group else None for group in groups]

    now, (seen, unseen) = accuracies(0.0), means(0.0)
    area = harmonic = None
    if seen is not None and unseen is not None:
        harmonic = 2 * seen * unseen / (seen + unseen) if seen + unseen else 0.0
        leads = {float(s[generation.seen].max()) - float(s[~generation.seen].max()) for _, s in scores}
        steps = [lead + 1e-6 for lead in sorted(leads)]
        points = [means(offset) for offset in (-1e3, *steps)]
        area = sum((a[0] - b[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    learned = {c for c, flag in known.items() if flag}
    lost = [max(0.0, share - now[c]) for c, share in best.items() if c in learned and c in now]
    moved: dict[str, float] = {}
    if before is not None and before.servable and generation.servable:
        for class_id in sorted(set(before.class_ids) & set(generation.class_ids)):
            u, v = (g.vectors[g.class_ids.index(class_id)].astype(np.float64) for g in (before, generation))
            moved[class_id] = float(np.arccos(u @ v / np.linalg.norm(u) / np.linalg.norm(v)))
    return {
        "generation": generation.number,
        "digest": generation.digest,
        "samples": len(asked),
        "seen": seen,
        "unseen": unseen,
        "harmonic": harmonic,
        "forgetting": float(np.mean(lost)) if lost else None,
        "area": area,
        "per_class": now,
        "best": {c: max(best.get(c, 0.0), now.get(c, 0.0)) for c in sorted(learned) if c in best or c in now},
        "movement": moved,
        "by_examples": by_examples(generation, now),
    }


def by_examples(generation: Generation, accuracies: Mapping[str, float]) -> dict[str, float]:
    assert generation.examples is not None
    examples = dict(zip(generation.class_ids, generation.examples.tolist(), strict=True))
    groups = {"0": (0, 0), "1-2": (1, 2), "3-5": (3, 5), "6-20": (6, 20), ">20": (21, 10**9)}
    shares = {
        group: [share for c, share in accuracies.items() if first <= examples[c] <= last]
        for group, (first, last) in groups.items()
    }
    return {group: float(np.mean(found)) for group, found in shares.items() if found}


def assert_same(found: list[Evaluation], expected: list[Any]) -> None:
    """One evaluation per generation, in order, each with these figures up to rounding."""

    def close(figures: Any) -> Any:
        if isinstance(figures, dict):
            return pytest.approx(figures, abs=1e-6)
        return figures if figures is None or isinstance(figures, str) else pytest.approx(figures, abs=1e-6)

    assert [e.generation for e in found] == [figures["generation"] for figures in expected]
    for evaluation, figures in zip(found, expected, strict=True):
        assert evaluation.model_dump() == {name: close(figure) for name, figure in figures.items()}


def wait_until_ready(*workers: InThread) -> None:
    """Waits until each of them has caught up or stands by."""

    def ready(worker: InThread) -> bool:
        worker.alive()
        return worker.worker is not None and worker.worker.why_not_ready() is None

    until(lambda: all(map(ready, workers)), "readiness")


@contextmanager
def new_stream(bus: Bus, partitions: int = 2) -> Iterator[Stream]:
    """A new stream, with its genesis."""
    stream = Stream(bus, Topics(f"e{uuid.uuid4().hex[:10]}"))
    bus.create(stream.topics.specs(partitions))
    stream.commit()
    yield stream
