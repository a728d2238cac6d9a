"""What the authors' published code effectively does, for comparison with what their paper says.

| printed                                    | here, as in the code                                                    |
|--------------------------------------------|-------------------------------------------------------------------------|
| log(1 - cos) per sample                    | -log(mean cos(x, S_y)) + log(mean cos(x', S_y)) on D                    |
| L_nuclear in G's loss                      | mean squared error on D, and a length of mu' - mu on G                  |
| L_sal on G                                 | computed on numbers without gradient: it moves nothing and is left out  |
| L_snl on D                                 | on G only                                                               |
| replay keeps what is classified correctly  | a mask made for the first class and reused for all; a row passes when D |
|                                            | and the nearest mean are both right or both wrong; it is relabelled     |
|                                            | by the nearest mean                                                     |

Two habits of the code are not here because a learner cannot have them: attributes of unseen classes drawn by their
frequency in the test set, and the epoch chosen by test accuracy.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.base import Networks
from stream_cgzsl.learners.gan.batches import Rows
from stream_cgzsl.learners.gan.paper import Classes, Paper, Training, attributes_of, class_means, descend
from stream_cgzsl.learners.gan.replay import Replay
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics


def mean_likeness(x: Tensor, y: Tensor, s: Tensor, signed: bool) -> Tensor:
    """The mean over rows of cos(x, S_y), before any logarithm."""
    return losses.likeness((x * s[y]).sum(1).mean(), signed)


class AuthorsTraining(Training):
    """The same step with the code's losses. `sal` has no effect; `nuclear` also weighs G's |mu' - mu|."""

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, z: Tensor) -> dict[str, Tensor]:
        k, c, n, seen = self.options.scale, self.classes, len(x), self.classes.places.seen
        size = c.means.shape[1] ** 0.5  # the code's features have numbers of order 1, ours a length of 1
        fake = self.g.generate(z, c.attributes[torch.cat((y, unseen))])  # [n + u, F]
        x_seen, x_unseen = torch.split(losses.unit(fake), [n, len(unseen)])  # [n, F], [u, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F]
        real, made = mean_likeness(x, y, s, c.signed), mean_likeness(x_seen.detach(), y, s, c.signed)
        on_d = {
            "gan_d": made.log() - real.log(),
            "rcl": losses.rcl(x, y, s[:seen], k),
            "nuclear": F.mse_loss(size * p[:seen], size * c.means),
        }
        descend(self.optimise_d, on_d, self.weights)

        self.projections = self.d(c.attributes)  # [C, F]
        s = losses.unit(self.projections.detach())  # [C, F]
        i, fake_means = class_means(fake[:n], y)  # [m], [m, F]
        on_g = {
            "gan_g": -mean_likeness(x_seen, y, s, c.signed).log(),
            "pcl": losses.pcl(x_seen, y, s[:seen], k),
            "mean": size * torch.linalg.vector_norm(fake_means - c.means[i], dim=1).mean(),
        }
        if len(unseen):
            on_g["snl"] = losses.pcl(x_unseen, unseen, s, k)  # the cross-entropy of L_snl, but with G's gradient
        descend(self.optimise_g, on_g, {**self.weights, "mean": self.options.nuclear})
        return on_d | on_g


class AuthorsCode(Paper):
    """Takes the options of `paper`."""

    name = "authors-code"

    def _training(self, networks: Networks, classes: Classes) -> Training:
        return AuthorsTraining(networks, classes, self.options)

    def _generate(
        self, networks: Networks, before: ClassStatistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        attributes = attributes_of(before, self.device)
        means = losses.unit(torch.from_numpy(before.means).to(self.device, torch.float32))  # [seen, F]
        with torch.no_grad():
            s = losses.unit(networks[1](attributes))[classes]  # [seen, F]
            labels = classes.repeat_interleave(rows)
            x = self._draw(networks, before, rng)(labels)
            nearest = (x @ means.T).argmax(1)  # [seen * rows]
            by_d = (x[:rows] @ s.T).argmax(1)  # [rows] of the first class
        passes = ((by_d == 0) == (nearest[:rows] == 0)).repeat(len(classes))
        return Replay(Rows(x[passes], classes[nearest[passes]]), int((~passes).sum()))
