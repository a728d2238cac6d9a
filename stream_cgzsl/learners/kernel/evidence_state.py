"""What `evidence` keeps: of each class its attributes, count and mean, and of all one scatter; never an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from stream_cgzsl.learners.interface import Snapshot, Space
from stream_cgzsl.learners.kernel.blocks import Places
from stream_cgzsl.learners.kernel.class_places import ClassPlaces, Taught
from stream_cgzsl.learners.numerics.triangular import mirrored, triangle
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.features import transform_of
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.schemas import Array
from stream_cgzsl.windows.window import Description


class Classes(NamedTuple):
    """Some classes, float64 on one device."""

    attributes: torch.Tensor  # [classes, attributes]
    counts: torch.Tensor  # n [classes], 0 without examples
    means: torch.Tensor  # [classes, features]


@dataclass(frozen=True, eq=False)
class Totals:
    """What is counted over all classes. `at_refresh` is (examples, taught, clock) as of the last refresh."""

    scatter: Array  # [features, features]
    freedom: float = 0.0  # of the scatter
    examples: int = 0  # ever
    taught: int = 0  # classes with examples
    clock: int = 0  # windows with examples
    refreshes: int = 0
    at_refresh: tuple[int, int, int] = (0, 0, 0)


class EvidenceState:
    """With a `half_life`, in windows with examples, counts and the scatter fade; the mean of a class does not.

    A count is that of the last window that touched its class or refreshed everything, and fades when it is next used.
    """

    def __init__(self, space: Space, half_life: float = 0.0) -> None:
        self.space = space
        self.places = ClassPlaces(space)
        self.totals = Totals(np.zeros((space.features, space.features)))
        self._half_life = half_life

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is changed inside is as it was before when an error leaves it."""
        before = self.totals
        try:
            with self.places.all_or_nothing():
                yield
        except BaseException:
            self.totals = before
            raise

    @property
    def transform(self) -> str:
        return transform_of(self.space.signed)

    def classes(self, places: Places, device: torch.device) -> Classes:
        taught = self.places.taught(places)
        attributes = torch.from_numpy(self.places.attributes(places)).to(device, torch.float64)
        counts, means = (torch.from_numpy(numbers).to(device) for numbers in (taught.counts, taught.means))
        return Classes(attributes, counts, means)

    def pooled(self) -> Moments:
        """What all classes share, without any class."""
        return Moments({}, {}, self.totals.scatter, self.totals.examples, self.totals.freedom)

    def statistics(self, class_ids: Sequence[str]) -> ClassStatistics:
        """Of these classes alone, with what all share."""
        class_ids = sorted(class_ids)
        places = self.places.of(class_ids)
        taught = self.places.taught(places)
        rows = np.flatnonzero(taught.examples).tolist()
        moments = replace(
            self.pooled(),
            counts={class_ids[row]: float(taught.counts[row]) for row in rows},
            means={class_ids[row]: taught.means[row] for row in rows},
        )
        vectors = self.places.attributes(places)
        described = {c: Description(c, vector) for c, vector in zip(class_ids, vectors, strict=True)}
        return ClassStatistics(self.space, described, moments)

    # ---- what a window changes

    def retire(self, class_id: str) -> None:
        """Drops a class. Its share of the scatter stays, see `Moments.without`."""
        taught = int(self.places.examples(self.places.of([class_id]))[0] > 0)
        self.places.drop(class_id)
        self.totals = replace(self.totals, taught=self.totals.taught - taught)

    def describe(self, description: Description) -> bool:
        """Whether the description says anything new."""
        vector, class_id = np.asarray(description.vector, np.float32), description.class_id
        if class_id in self.places:
            places = self.places.of([class_id])
            if np.array_equal(vector, self.places.attributes(places)[0]):
                return False
            self.places.describe(int(places[0]), vector)
        else:
            self.places.describe(self.places.add(class_id), vector)
        return True

    def learn(self, fresh: Moments, device: torch.device) -> None:
        """Merges the moments of a window's rows, which are of classes that are described."""
        totals, class_ids = self.totals, list(fresh.counts)
        clock, kept = totals.clock + 1, self._fading(1)
        places = self.places.of(class_ids)
        taught = self.places.taught(places)
        counts = dict(zip(class_ids, self._faded(clock, taught.counts, taught.clocks).tolist(), strict=True))
        means = dict(zip(class_ids, taught.means, strict=True))
        before = Moments(
            {c: n for c, n in counts.items() if n},
            {c: means[c] for c, n in counts.items() if n},
            totals.scatter if kept == 1 else totals.scatter * kept,
            totals.examples,
            totals.freedom * kept,
        )
        after = before.merge(fresh, device)
        self.places.teach(
            places,
            Taught(
                np.stack([after.means[c] for c in class_ids]),
                np.array([after.counts[c] for c in class_ids], dtype=np.float64),
                taught.examples + np.array(list(fresh.counts.values()), dtype=np.int64),
                np.full_like(taught.clocks, clock),
            ),
        )
        self.totals = replace(
            totals,
            scatter=after.scatter,
            freedom=after.freedom,
            examples=after.rows,
            taught=totals.taught + int((taught.examples == 0).sum()),
            clock=clock,
        )

    # ---- refreshes

    def grown(self, growth: float) -> bool:
        """Whether examples, or classes with examples, have grown by this share since the last refresh; or as much of
        what it rested on has faded."""
        totals, (examples, taught, clock) = self.totals, self.totals.at_refresh
        if totals.examples >= (1 + growth) * examples or totals.taught >= (1 + growth) * taught:
            return True
        return self._half_life > 0 and self._fading(totals.clock - clock) * (1 + growth) <= 1

    def mark_refresh(self) -> None:
        """All counts fade to now, and growth is measured from here."""
        totals = self.totals
        at_refresh = totals.examples, totals.taught, totals.clock
        self.totals = replace(totals, refreshes=totals.refreshes + 1, at_refresh=at_refresh)
        if self._half_life:
            self.places.fade(totals.clock, partial(self._faded, totals.clock))

    def _fading(self, windows: int) -> float:
        """What is left of a count after so many windows."""
        return float(2 ** (-windows / self._half_life)) if self._half_life else 1.0

    def _faded(self, clock: int, counts: Array, clocks: Places) -> Array:
        if not self._half_life:
            return counts
        return np.asarray(counts * 2.0 ** ((clocks - clock) / self._half_life))

    # ---- snapshots

    def snapshot(self) -> Snapshot:
        places, totals = self.places.snapshot(), self.totals
        numbers = {name: value for name, value in vars(totals).items() if name != "scatter"}
        return Snapshot(
            {**places.arrays, "scatter": triangle(totals.scatter)},
            {**places.meta, **numbers, "at_refresh": list(totals.at_refresh)},
        )

    @classmethod
    def restore(cls, space: Space, half_life: float, snapshot: Snapshot) -> EvidenceState:
        state, meta = cls(space, half_life), dict(snapshot.meta)
        state.places = ClassPlaces.restore(space, snapshot)
        del meta["class_ids"]
        examples, taught, clock = meta.pop("at_refresh")
        scatter = mirrored(snapshot.arrays["scatter"], space.features)
        state.totals = Totals(scatter, **meta, at_refresh=(examples, taught, clock))
        return state
