"""The paper's system as it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stream_cgzsl.generation import Generation
from stream_cgzsl.learners import losses
from stream_cgzsl.learners.base import Lesson
from stream_cgzsl.learners.calibration import Evidence
from stream_cgzsl.learners.interface import Monitor, Progress, Snapshot, Space
from stream_cgzsl.learners.networked import EVERY, NetworkLearner, Networks, remember, require_finite
from stream_cgzsl.learners.networks import Generator, Projector
from stream_cgzsl.learners.options import parse_options
from stream_cgzsl.learners.prequential import Withheld, seen_evidence, unseen_evidence, withhold
from stream_cgzsl.learners.replay import Replay, Rows, mixed, nothing, real, replay
from stream_cgzsl.learners.shared import Shared
from stream_cgzsl.learners.statistics import Statistics


@dataclass(frozen=True)
class PaperOptions:
    """The printed constants. A loss is switched off by weight 0, replay by 0 rows.

    `replay` is the most rows a class: it gives no more than the window's classes have on average, as the authors did
    by hand for each data set. `max_iterations` bounds a window, however large.
    """

    hidden: int = 1024
    learning_rate: float = 0.005
    weight_decay: float = 1e-5
    batch: int = 64
    unseen_batch: int = 16
    epochs: int = 50
    max_iterations: int = 500
    scale: float = 10.0
    neighbours: int = 3
    tolerance: float = 0.01
    gan: float = 1.0
    rcl: float = 1.0
    pcl: float = 1.0
    snl: float = 1.0
    sal: float = 1.0
    nuclear: float = 1.0
    replay: int = 300
    calibrate: bool = True


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a window for training, seen ones first: the first rows of everything are theirs."""

    order: Tensor  # [classes] their index in order of id
    attributes: Tensor  # [classes, attributes], of length 1
    means: Tensor  # [seen, features]
    near: Tensor  # [classes, n, features]: the means of the n nearest seen classes, of length 1
    similarity: Tensor  # [classes, n]: attribute cosines with them
    nearness: Tensor  # [classes, n]: 1, or 0 where there are fewer
    signed: bool

    @classmethod
    def of(cls, statistics: Statistics, neighbours: int, device: torch.device) -> Classes:
        seen = torch.from_numpy(statistics.seen)
        order = torch.cat((seen.nonzero()[:, 0], (~seen).nonzero()[:, 0])).to(device)
        attributes = attributes_of(statistics, device)[order]
        means = torch.from_numpy(statistics.means).to(device, torch.float32)
        known = torch.arange(len(means), device=device)
        positions, similarity, nearness = losses.neighbours(attributes, known, neighbours)
        near = losses.unit(means)[positions]
        return cls(order, attributes, means, near, similarity, nearness, statistics.space.signed)

    @property
    def seen(self) -> int:
        return len(self.means)

    @property
    def unseen(self) -> int:
        return len(self.order) - len(self.means)

    def placed(self, rows: Rows) -> Rows:
        """Rows whose classes are told by index in order of id -> by position in this order."""
        places = torch.empty_like(self.order)
        places[self.order] = torch.arange(len(self.order), device=self.order.device)
        return Rows(rows.x, places[rows.y])


def attributes_of(statistics: Statistics, device: torch.device) -> Tensor:
    """[classes, attributes] float32 at length 1."""
    return losses.unit(torch.from_numpy(statistics.attributes).to(device, torch.float32))


class Training:
    """One window's training: fresh optimisers, and the step."""

    def __init__(self, networks: Networks, classes: Classes, options: PaperOptions) -> None:
        self.g, self.d = networks
        self.classes = classes
        self.options = options
        rates = {"lr": options.learning_rate, "weight_decay": options.weight_decay, "fused": True}
        self.optimise_g = torch.optim.Adam(self.g.parameters(), **rates)
        self.optimise_d = torch.optim.Adam(self.d.parameters(), **rates)
        self.projections: Tensor = self.d(classes.attributes)  # [C, F]; from here on always those of the newest D

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, z: Tensor) -> dict[str, Tensor]:
        """x: [n, F] of length 1, y: [n] seen classes, unseen: [u] unseen classes, z: [n + u, A] noise."""
        o, c, n, seen = self.options, self.classes, len(x), self.classes.seen
        made = torch.cat((y, unseen))  # [n + u]
        fake = self.g.generate(z, c.attributes[made])  # [n + u, F]
        x_seen, x_unseen = losses.unit(fake).split((n, len(unseen)))  # [n, F], [u, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F]
        on_d = {"gan_d": o.gan * losses.gan_projector(x, y, x_seen, y, s, c.signed)} if o.gan else {}
        if o.rcl:
            on_d["rcl"] = o.rcl * losses.rcl(x, y, s[:seen], o.scale)
        if o.snl and len(unseen):
            on_d["snl"] = o.snl * losses.snl(x_unseen, unseen, s, o.scale)
        if o.nuclear:  # printed in G's loss, where it has no gradient: S depends on D alone
            on_d["nuclear"] = o.nuclear * losses.nuclear(p[:seen], c.means)
        descend(self.optimise_d, on_d)

        self.projections = self.d(c.attributes)  # [C, F]: for G now, and for D's next step
        s = losses.unit(self.projections.detach())  # [C, F]
        on_g = {"gan_g": o.gan * losses.gan_generator(x_seen, y, s, c.signed)} if o.gan else {}
        if o.pcl:
            on_g["pcl"] = o.pcl * losses.pcl(x_seen, y, s[:seen], o.scale)
        if o.sal:
            i, fake_means = class_means(fake, made)  # [m] the classes in the batch, [m, F]
            on_g["sal"] = o.sal * losses.sal(
                fake_means, c.near[i], c.similarity[i], c.nearness[i], o.tolerance, o.tolerance
            )
        descend(self.optimise_g, on_g)
        return {**on_d, **on_g}


def descend(optimiser: torch.optim.Optimizer, terms: Mapping[str, Tensor]) -> None:
    """One step down the sum of the terms; none if there are none."""
    if terms:
        optimiser.zero_grad()
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def class_means(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct classes among [rows] and the mean of each one's rows: [m], [m, features]."""
    distinct, index = classes.unique(return_inverse=True)
    members = torch.nn.functional.one_hot(index, len(distinct)).T.to(x.dtype)  # [m, rows]
    return distinct, (members / members.sum(1, keepdim=True)) @ x


class Paper(NetworkLearner):
    """G and D of the paper, with its losses, constants and replay, on published features of length 1.

    Beyond the print there is one thing: the seen offset from evidence (`calibrate`), which without is 0.
    """

    name = "paper"

    def __init__(self, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> None:
        super().__init__(space, device)
        self.options = parse_options(PaperOptions, options, self.name)

    def _fresh(self, rng: torch.Generator) -> Networks:
        sizes = self.space.attributes, self.options.hidden, self.space.features
        signed = self.space.signed
        return (
            Generator(*sizes, "linear" if signed else "sigmoid", rng),
            Projector(*sizes, "linear" if signed else "relu", rng),
        )

    def _train(self, lesson: Lesson, monitor: Monitor) -> Snapshot:
        number = lesson.window.number
        if not any(len(given.rows) for given in lesson.window.features.values()):
            return self._memory
        evidence = Evidence.restore(self._memory).faded()
        old = self._remembered(self._memory)
        withheld = Withheld(lesson.after, lesson.window.features, {})
        if self.options.calibrate:
            withheld = withhold(lesson, self.device)
            if old is not None and lesson.before.seen.any():
                score = self._generation_of(number, lesson.before, old, 0.0, {}).scores
                evidence = unseen_evidence(evidence, lesson.window, lesson.before, score)

        networks = old if old is not None else self._placed(self._fresh(self._rng(number, "networks")))
        replayed = self._replay(lesson, networks) if old is not None else nothing(self.space.features, self.device)
        self._optimise(number, networks, withheld, replayed, monitor)
        require_finite(networks, self.name, number)

        if self.options.calibrate:
            score = self._generation_of(number, withheld.statistics, networks, 0.0, {}).scores
            evidence = seen_evidence(evidence, withheld, score)
        return remember(networks, evidence, replayed)

    def _replay(self, lesson: Lesson, networks: Networks) -> Replay:
        """From the networks as the last window left them, for the classes they were trained on."""
        o, before = self.options, lesson.before
        classes = torch.from_numpy(before.seen).nonzero()[:, 0].to(self.device)
        given = [len(examples.rows) for examples in lesson.window.features.values()]
        most = o.max_iterations * o.batch  # more than this can never be trained on
        rows = min(o.replay, -(-sum(given) // len(given)), most // max(len(classes), 1))
        if not rows or not len(classes):
            return nothing(self.space.features, self.device)
        return self._generate(networks, before, classes, rows, self._rng(lesson.window.number, "replay"))

    def _generate(
        self, networks: Networks, before: Statistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        g, d = networks
        attributes = attributes_of(before, self.device)
        s = losses.unit(d(attributes)).detach()  # [classes, features]
        offset = self._offset(self._memory) * torch.from_numpy(before.seen).to(self.device, torch.float32)

        def generate(labels: Tensor) -> Tensor:
            return losses.unit(g.generate(noise(len(labels), attributes, rng), attributes[labels]))

        return replay(classes, rows, generate, lambda x: (x @ s.T - offset).argmax(1))

    def _optimise(
        self, number: int, networks: Networks, withheld: Withheld, replayed: Replay, monitor: Monitor
    ) -> None:
        o, statistics = self.options, withheld.statistics
        classes = Classes.of(statistics, o.neighbours, self.device)
        most = o.max_iterations * o.batch
        fresh = real(withheld.trained, statistics.class_ids, statistics.transform, most, self.device)
        rows = classes.placed(mixed(fresh, replayed.rows))
        rng = self._rng(number, "batches")
        training = self._training(networks, classes)
        steps = min(o.epochs * -(-len(rows) // o.batch), o.max_iterations)
        for step, batch in zip(range(1, steps + 1), _shuffled(len(rows), o.batch, rng)):  # noqa: B905 - endless
            monitor.check()
            batch = batch.to(self.device)
            count = o.unseen_batch if classes.unseen else 0
            unseen = torch.randint(classes.unseen or 1, (count,), generator=rng).to(self.device) + classes.seen
            z = noise(len(batch) + count, classes.attributes, rng)
            terms = training.step(rows.x[batch], rows.y[batch], unseen, z)
            if step % EVERY == 0 or step == steps:
                monitor.progress(Progress(step, steps, {name: term.item() for name, term in terms.items()}))

    def _training(self, networks: Networks, classes: Classes) -> Training:
        return Training(networks, classes, self.options)

    def _offset(self, memory: Snapshot) -> float:
        return Evidence.restore(memory).offset() if self.options.calibrate else 0.0

    def _publish(self, number: int, statistics: Statistics, shared: Shared, memory: Snapshot) -> Generation:
        networks = self._remembered(memory)
        assert networks is not None, "a class is seen only after a window was trained"
        calibration = {**shared.record(), **memory.meta["replay"]}
        if self.options.calibrate:
            calibration |= Evidence.restore(memory).record()
        return self._generation_of(number, statistics, networks, self._offset(memory), calibration)

    def _generation_of(
        self, number: int, statistics: Statistics, networks: Networks, offset: float, calibration: Mapping[str, Any]
    ) -> Generation:
        with torch.no_grad():
            vectors = losses.unit(networks[1](attributes_of(statistics, self.device)))
        return Generation(
            number=number,
            class_ids=statistics.class_ids,
            seen=statistics.seen,
            vectors=vectors.cpu().numpy(),
            biases=-offset * statistics.seen.astype(np.float32),
            centre=np.zeros(self.space.features, np.float32),
            metric="cosine",
            transform=statistics.transform,
            calibration=calibration,
        )


def noise(rows: int, attributes: Tensor, rng: torch.Generator) -> Tensor:
    """z ~ N(0, I) of the attributes' size, drawn on the CPU whatever the device: [rows, attributes]."""
    return torch.randn(rows, attributes.shape[1], generator=rng).to(attributes.device)


def _shuffled(rows: int, batch: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Indices of batch after batch, epoch after epoch, without end."""
    while True:
        yield from torch.randperm(rows, generator=rng).split(batch)
