"""What learners with a G and a D share: where the networks are remembered, and that they must stay finite."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import torch

from stream_cgzsl.errors import TrainingFailed
from stream_cgzsl.learners.base import StatisticsLearner
from stream_cgzsl.learners.calibration import Evidence
from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.learners.networks import Generator, Projector, TwoLayers
from stream_cgzsl.learners.randomness import generator
from stream_cgzsl.learners.replay import Replay

Networks = tuple[Generator, Projector]

EVERY = 10
"""Progress is told once in so many iterations."""


class NetworkLearner(StatisticsLearner):
    """Remembers G, D and the evidence for its offset; nothing before its first window of features."""

    @abstractmethod
    def _fresh(self, rng: torch.Generator) -> Networks:
        """Networks that know nothing, on the CPU, drawn from `rng`."""

    def _remembered(self, memory: Snapshot) -> Networks | None:
        """Copies of the networks in a memory, on the device."""
        if "G.w1" not in memory.arrays:
            return None
        networks = self._fresh(torch.Generator())
        for name, network in zip("GD", networks, strict=True):
            network.load(name, memory.arrays)
        return self._placed(networks)

    def _placed(self, networks: Networks) -> Networks:
        g, d = networks
        return g.to(self.device), d.to(self.device)

    def _rng(self, number: int, purpose: str) -> torch.Generator:
        return generator(self.space.seed, number, f"{self.name}/{purpose}")

    def restore(self, snapshot: Snapshot) -> None:
        """Raises `ValueError` also when the networks are of another size than the options say."""
        before = self._statistics, self._memory
        super().restore(snapshot)
        try:
            self._remembered(self._memory)
        except ValueError:
            self._statistics, self._memory = before
            raise


def remember(networks: Networks, evidence: Evidence, replayed: Replay) -> Snapshot:
    """The memory after a window."""
    told = evidence.snapshot()
    g, d = networks
    return Snapshot(
        {**g.arrays("G"), **d.arrays("D"), **told.arrays}, {**told.meta, "replay": replayed.record()}
    )


def require_finite(networks: Iterable[TwoLayers], learner: str, number: int) -> None:
    for network in networks:
        if not all(bool(torch.isfinite(p).all()) for p in network.parameters()):
            raise TrainingFailed(
                f"window {number}: training of learner {learner!r} left weights that are not finite; the window was "
                "not learned. A lower learning_rate may help"
            )
