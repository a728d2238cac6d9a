"""What systems that generate rows share: networks trained on a window, then a head on generated rows of every class.

The head of a window is trained on the window's own rows too, if its system does so, and is kept. When classes are
described, revised or retired without a training window, a head is fitted again, on what the memory has. Its random
numbers come from the classes, not from a window's number: going back to a generation gives its answers.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.baselines.heads import Head
from stream_cgzsl.learners.baselines.learner import Baseline, Lesson
from stream_cgzsl.learners.baselines.networks import to_array, to_tensor
from stream_cgzsl.learners.baselines.reservoir import Reservoir, forget
from stream_cgzsl.learners.baselines.roster import Roster
from stream_cgzsl.learners.baselines.rows import Rows, joined
from stream_cgzsl.learners.interface import Keeps, Monitor, Snapshot
from stream_cgzsl.learners.numerics.randomness import generator
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation

Networks = TypeVar("Networks")


@dataclass(frozen=True)
class HeadOptions:
    """`seen_samples` and `unseen_samples` are the rows a class that a head is trained on."""

    seen_samples: int = 300
    unseen_samples: int = 300
    head_rate: float = 1e-3
    head_epochs: int = 25
    head_batch: int = 64

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is int and value < 1:
                raise UsageError(f"option {name!r} must be at least 1, not {value}")


class Generative(Baseline, Generic[Networks]):
    """Memory: the networks, the head, and exemplars where it keeps them (the option `memory` then bounds them)."""

    options: HeadOptions
    keeps: ClassVar[Keeps] = "nothing"
    real_rows: ClassVar[bool] = True  # a head is trained on those there are; if not, on generated ones alone

    @abstractmethod
    def _trained(
        self, lesson: Lesson, exemplars: Rows, networks: Networks | None, monitor: Monitor
    ) -> tuple[Networks, Mapping[str, Array]]:
        """The networks after the lesson, and their arrays. `networks` are copies of those before; None at first."""

    @abstractmethod
    def _networks(self, arrays: Mapping[str, Array]) -> Networks:
        """Copies of the networks that gave these arrays."""

    @abstractmethod
    def _inputs(self, networks: Networks, x: Tensor, rng: torch.Generator) -> Tensor:
        """Real rows as the head takes them in training: [rows, features] -> [rows, numbers]"""

    @abstractmethod
    def _samples(self, networks: Networks, attributes: Tensor, rng: torch.Generator) -> Tensor:
        """Generated rows as the head takes them, one for each of [rows, attributes]."""

    @abstractmethod
    def _served(self, number: int, roster: Roster, networks: Networks, head: Head) -> Generation: ...

    def _train(self, lesson: Lesson, memory: Snapshot, monitor: Monitor) -> Snapshot:
        old = self._networks(memory.arrays) if self._has_networks(memory) else None
        reservoir, roster = self._reservoir(memory), lesson.after
        exemplars = self._exemplars(reservoir, roster)
        networks, arrays = self._trained(lesson, exemplars, old, monitor)
        head = self._head(networks, roster, joined(exemplars, lesson.rows), monitor.check)
        meta: dict[str, object] = {"head": fingerprint(roster)}
        if reservoir is not None:
            reservoir = reservoir.after(lesson.number, lesson.examples, self._rng(lesson.number, "reservoir"))
            arrays, meta = {**arrays, **reservoir.arrays()}, {**meta, "tasks": reservoir.meta()}
        return Snapshot({**arrays, "head.w": to_array(head.w), "head.b": to_array(head.b)}, meta)

    def _publish(self, number: int, roster: Roster, memory: Snapshot) -> Generation:
        networks = self._networks(memory.arrays)
        if memory.meta["head"] == fingerprint(roster):
            head = Head(*(to_tensor(memory.arrays[name], self.device) for name in ("head.w", "head.b")))
        else:
            exemplars = self._exemplars(self._reservoir(memory), roster)
            head = self._head(networks, roster, exemplars, lambda: None)
        return self._served(number, roster, networks, head)

    def _head(self, networks: Networks, roster: Roster, real: Rows, check: Callable[[], None]) -> Head:
        """Trained on as many rows of each class as the options say: real ones, repeated or left out, or generated."""
        o, rng = self.options, generator(self.space.seed, 0, f"head {fingerprint(roster)}")
        attributes, parts = self._attributes(roster), []
        counts = torch.bincount(real.y, minlength=len(roster.class_ids)).tolist()
        with torch.no_grad():
            for number, seen in enumerate(roster.seen.tolist()):
                check()
                wanted = o.seen_samples if seen else o.unseen_samples
                if self.real_rows and counts[number]:
                    own = real.x[real.y == number]
                    order = torch.randperm(max(wanted, len(own)), generator=rng)[:wanted] % len(own)
                    x = self._inputs(networks, own[order.to(own.device)], rng)
                else:
                    x = self._samples(networks, attributes[number].expand(wanted, -1), rng)
                parts.append(Rows(x, torch.full((len(x),), number, device=x.device)))
        rows = joined(*parts)
        return Head.fitted(rows, len(parts), o.head_rate, o.head_epochs, o.head_batch, rng, check)

    def _has_networks(self, memory: Snapshot) -> bool:
        return "head" in memory.meta

    def _reservoir(self, memory: Snapshot) -> Reservoir | None:
        if self.keeps != "exemplars":
            return None
        return Reservoir.restore(self.options.memory, memory)  # type: ignore[attr-defined]

    def _exemplars(self, reservoir: Reservoir | None, roster: Roster) -> Rows:
        if reservoir is None:
            return Rows.none(self.space.features, self.device)
        return reservoir.labelled(roster.class_ids, self.space.features, self.device)

    def _forget(self, memory: Snapshot, retired: Collection[str]) -> Snapshot:
        return forget(memory, retired) if self.keeps == "exemplars" and retired else memory

    def _features(self, networks: Networks, attributes: Tensor, rng: torch.Generator) -> Tensor | None:
        """Generated rows in the space of published features; None where only latent ones are generated."""
        return F.normalize(self._samples(networks, attributes, rng))

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        roster = self._roster
        for class_id in class_ids:
            if class_id not in roster.counts:
                raise UsageError(f"class {class_id!r} has no examples yet: only learned classes can be replayed")
        chosen = [roster.class_ids.index(class_id) for class_id in class_ids]
        attributes = self._attributes(roster)[chosen].repeat_interleave(rows, 0)
        with torch.no_grad():
            x = self._features(self._networks(self._memory.arrays), attributes, self._rng(0, "generate"))
        return None if x is None else to_array(x.view(len(chosen), rows, -1))


def fingerprint(roster: Roster) -> str:
    """Of the classes, their attributes and which are seen: a head fits one of these."""
    text = "\0".join(roster.class_ids).encode()
    return hashlib.sha256(text + roster.attributes.tobytes() + roster.seen.tobytes()).hexdigest()[:16]
