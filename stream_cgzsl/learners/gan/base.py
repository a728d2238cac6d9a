"""The base of learners with a G and a D: what happens in a window around the training of the networks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stream_cgzsl.errors import TrainingFailed, UsageError
from stream_cgzsl.learners.calibration.curves import WHITENED, AccuracyCurves, Prior
from stream_cgzsl.learners.calibration.held_out import Scorer
from stream_cgzsl.learners.calibration.prequential import Withheld, add_seen, add_unseen, best_offset, withhold
from stream_cgzsl.learners.gan.networks import Generator, Projector
from stream_cgzsl.learners.gan.replay import Replay, nothing
from stream_cgzsl.learners.interface import Monitor, Snapshot
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics
from stream_cgzsl.learners.statistics.learner import NOTHING, Lesson, StatisticsLearner, require_learned

Networks = tuple[Generator, Projector]

Draw = Callable[[Tensor], Tensor]
"""[rows] classes, by index in order of id -> [rows, features], published features of length 1"""


@dataclass(frozen=True)
class NetworkOptions:
    """What learners with two networks have in common. A loss is switched off by weight 0, replay by 0."""

    hidden: int = 1024  # units of the one hidden layer
    learning_rate: float = 0.005
    batch: int = 64  # real and replayed rows in a step
    unseen_batch: int = 16  # unseen classes in a step, for L_snl
    scale: float = 1.0  # k in softmax(k cos)
    neighbours: int = 3  # n_c of L_sal
    tolerance: float = 0.01  # eps of L_sal
    gan: float = 1.0  # weights of the losses
    rcl: float = 1.0
    pcl: float = 1.0
    snl: float = 1.0
    sal: float = 1.0
    nuclear: float = 1.0
    replay: int = 22  # features replayed of each class seen before
    calibrate: bool = False  # find the seen offset, on rows that are held back for that

    def __post_init__(self) -> None:
        for name in ("hidden", "batch", *self.at_least_one):
            if getattr(self, name) < 1:
                raise UsageError(f"option {name!r} must be at least 1, not {getattr(self, name)}")
        for name in ("unseen_batch", "neighbours", "replay"):
            if getattr(self, name) < 0:
                raise UsageError(f"option {name!r} must not be negative, and is {getattr(self, name)}")

    @property
    def at_least_one(self) -> tuple[str, ...]:
        """More options that must not be smaller."""
        return ()

    @property
    def weights(self) -> dict[str, float]:
        """By loss term; L_GAN has a side of D and one of G."""
        terms = ("rcl", "pcl", "snl", "sal", "nuclear")
        return {"gan_d": self.gan, "gan_g": self.gan, **{term: float(getattr(self, term)) for term in terms}}


class NetworkLearner(StatisticsLearner):
    """Memory: G, D and the accuracy curves of its offset; empty before the first window with features.

    A subclass defines untrained networks, how they score and generate, and how they are trained.
    """

    options: NetworkOptions
    prior: Prior = WHITENED

    @abstractmethod
    def _untrained(self, rng: torch.Generator) -> Networks:
        """Untrained networks on the CPU, initialised from `rng`."""

    @abstractmethod
    def _scorer(self, statistics: ClassStatistics, networks: Networks) -> Scorer:
        """Scores as they are published, without offset."""

    @abstractmethod
    def _draw(self, networks: Networks, statistics: ClassStatistics, rng: torch.Generator) -> Draw:
        """G of some classes, with noise from `rng`."""

    @abstractmethod
    def _generate(
        self, networks: Networks, before: ClassStatistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        """`rows` published features of each of `classes`, without those that are wrongly classified.

        `classes` are all seen ones, by index in order of id; it is among them that features are classified, as in
        L_rcl and L_pcl.
        """

    @abstractmethod
    def _optimise(
        self, lesson: Lesson, withheld: Withheld, replayed: Replay, networks: Networks | None, monitor: Monitor
    ) -> Networks:
        """The networks after the lesson. `networks` are copies of those before, to continue with; None at first."""

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        window, before = lesson.window, lesson.before
        if not any(len(given.rows) for given in window.features.values()):
            return self._memory
        curves = AccuracyCurves.restore(self._memory).faded()
        withheld = withhold(lesson, self.device) if self.options.calibrate else Withheld.nothing(lesson)
        old = self._networks_in(self._memory)
        replayed = nothing(self.space.features, self.device)
        if old is not None and before.seen.any():
            if self.options.calibrate:
                curves = add_unseen(curves, window, before, self._scorer(before, old))
            replayed = self._replay(lesson, old)
        networks = self._optimise(lesson, withheld, replayed, old, monitor)
        self._require_finite(networks, window.number)
        curves = add_seen(curves, withheld, self._scorer(withheld.statistics, networks))
        calibration, (g, d) = curves.snapshot(), networks
        more = self._remembered(lesson)
        arrays = {**g.arrays("G"), **d.arrays("D"), **calibration.arrays, **more.arrays}
        return Snapshot(arrays, {**calibration.meta, **more.meta, "replay": replayed.record()})

    def _remembered(self, lesson: Lesson) -> Snapshot:  # noqa: ARG002
        """What a learner keeps besides networks and curves."""
        return NOTHING

    def _replay(self, lesson: Lesson, networks: Networks) -> Replay:
        """From the networks of the last window, for the classes they were trained on."""
        classes = torch.from_numpy(lesson.before.seen).nonzero()[:, 0].to(self.device)
        rows = self._rows_a_class(lesson)
        if not rows:
            return nothing(self.space.features, self.device)
        return self._generate(networks, lesson.before, classes, rows, self._rng(lesson.window.number, "replay"))

    def _rows_a_class(self, lesson: Lesson) -> int:  # noqa: ARG002
        """How many features of each class are replayed."""
        return self.options.replay

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        statistics, networks = self._statistics, self._networks_in(self._memory)
        require_learned(statistics, class_ids)
        assert networks is not None, "a class is seen only after a window was trained"
        places = torch.tensor([statistics.class_ids.index(c) for c in class_ids], device=self.device)
        with torch.no_grad():
            x = self._draw(networks, statistics, self._rng(0, "generate"))(places.repeat_interleave(rows))
        generated: npt.NDArray[np.float32] = x.view(len(class_ids), rows, -1).cpu().numpy()
        return generated

    def _networks_in(self, memory: Snapshot) -> Networks | None:
        """Copies of the networks in a memory, on the device; None where it has none."""
        if "G.w1" not in memory.arrays:
            return None
        g, d = self._untrained(torch.Generator())
        g.load("G", memory.arrays)
        d.load("D", memory.arrays)
        return self._on_device((g, d))

    def _on_device(self, networks: Networks) -> Networks:
        g, d = networks
        return g.to(self.device), d.to(self.device)

    def _rng(self, number: int, purpose: str) -> torch.Generator:
        return generator(self.space.seed, number, purpose)

    def _offset(self, memory: Snapshot) -> float:
        return best_offset(AccuracyCurves.restore(memory), self.prior) if self.options.calibrate else 0.0

    def _record(self, memory: Snapshot) -> Mapping[str, Any]:
        """For `Generation.calibration`."""
        curves = AccuracyCurves.restore(memory).record() if self.options.calibrate else {}
        return {**curves, "offset": round(self._offset(memory), 9), **memory.meta["replay"]}

    def _require_finite(self, networks: Networks, number: int) -> None:
        for network in networks:
            if not all(bool(torch.isfinite(p).all()) for p in network.parameters()):
                raise TrainingFailed(
                    f"window {number}: training of learner {self.name!r} left weights that are not finite; the window "
                    "was not learned. A lower learning_rate may help"
                )

    def restore(self, snapshot: Snapshot) -> None:
        """Raises `ValueError` also when the networks are of another size than the options say."""
        before = self._statistics, self._memory
        super().restore(snapshot)
        try:
            self._networks_in(self._memory)
        except ValueError:
            self._statistics, self._memory = before
            raise
