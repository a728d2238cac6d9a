"""What the authors' published code effectively does, for comparison with what their paper says.

| printed                                    | here, as in the code                                                    |
|--------------------------------------------|-------------------------------------------------------------------------|
| log(1 - cos) per sample                    | -log(mean cos(x, S_y)) + log(mean cos(x', S_y)) on D                    |
| no scale in the softmax                    | k = 10                                                                  |
| L_nuclear in G's loss                      | mean squared error on D, and a length of mu' - mu on G                  |
| L_sal on G                                 | computed on numbers without gradient: it moves nothing and is left out  |
| L_snl on D                                 | on G only, in a second step that adds its gradient to that of the first |
| replay keeps what is classified correctly  | a mask made for the first class and reused for all; a row passes when D |
|                                            | and the nearest mean are both right or both wrong; it is relabelled     |
|                                            | by the nearest mean                                                     |

Three habits of the code are not here: attributes of unseen classes drawn by their frequency in the test set, the epoch
chosen by test accuracy (a learner has no test set), and leaving out the last rows of an epoch that do not fill a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stream_cgzsl.learners.gan import losses
from stream_cgzsl.learners.gan.base import Networks
from stream_cgzsl.learners.gan.batches import Rows
from stream_cgzsl.learners.gan.classes import Classes, attributes_of, class_means, means_in
from stream_cgzsl.learners.gan.networks import noise
from stream_cgzsl.learners.gan.paper import Paper, PaperOptions, Training, descend
from stream_cgzsl.learners.gan.replay import Replay
from stream_cgzsl.learners.statistics.class_statistics import ClassStatistics


@dataclass(frozen=True)
class AuthorsOptions(PaperOptions):
    """Those of the code."""

    scale: float = 10.0


def mean_likeness(x: Tensor, y: Tensor, s: Tensor, signed: bool) -> Tensor:
    """The mean over rows of cos(x, S_y), before any logarithm."""
    return losses.likeness((x * s[y]).sum(1).mean(), signed)


class AuthorsTraining(Training):
    """The same step with the code's losses. `sal` has no effect; `nuclear` also weighs G's |mu' - mu|."""

    def step(self, x: Tensor, y: Tensor, unseen: Tensor, rng: torch.Generator) -> dict[str, Tensor]:
        k, c, seen, a = self.options.scale, self.classes, self.classes.places.seen, self.classes.attributes
        fake = self.g.generate(noise(len(y), a, rng), a[y])  # [n, F]
        x_seen = losses.unit(fake)  # [n, F]

        p, s = self.projections, losses.unit(self.projections)  # [C, F], [C, F]
        real, made = mean_likeness(x, y, s, c.signed), mean_likeness(x_seen.detach(), y, s, c.signed)
        on_d = {
            "gan_d": losses.log(made) - losses.log(real),
            "rcl": losses.rcl(x, y, s[:seen], k),
            "nuclear": F.mse_loss(p[:seen], c.means),
        }
        descend(self.optimise_d, on_d, self.weights)

        self.projections = self.d(a)  # [C, F]
        s = losses.unit(self.projections.detach())  # [C, F]
        i, fake_means = class_means(fake, y)  # [m], [m, F]
        on_g = {
            "gan_g": -losses.log(mean_likeness(x_seen, y, s, c.signed)),
            "pcl": losses.pcl(x_seen, y, s[:seen], k),
            "mean": torch.linalg.vector_norm(fake_means - c.means[i], dim=1).sum() / seen,
        }
        descend(self.optimise_g, on_g, {**self.weights, "mean": self.options.nuclear})
        if len(unseen):
            x_unseen = losses.unit(self.g.generate(noise(len(unseen), a, rng), a[unseen]))  # [u, F]
            on_g["snl"] = losses.pcl(x_unseen, unseen, s, k)  # the cross-entropy of L_snl, but with G's gradient
            descend(self.optimise_g, {"snl": on_g["snl"]}, self.weights, onto=True)
        return on_d | on_g


class AuthorsCode(Paper):
    """Takes the options of `paper`."""

    name = "authors-code"
    kind = AuthorsOptions

    def _training(self, networks: Networks, classes: Classes) -> Training:
        return AuthorsTraining(networks, classes, self.options)

    def _generate(
        self, networks: Networks, before: ClassStatistics, classes: Tensor, rows: int, rng: torch.Generator
    ) -> Replay:
        attributes, known = attributes_of(before, self.device), means_in(self._memory)
        means = np.stack([known[before.class_ids[i]] for i in classes.tolist()])
        directions = losses.unit(torch.from_numpy(means).to(self.device, torch.float32))  # [seen, F]
        with torch.no_grad():
            s = losses.unit(networks[1](attributes))[classes]  # [seen, F]
            labels = classes.repeat_interleave(rows)
            x = self._draw(networks, before, rng)(labels)
            nearest = (x @ directions.T).argmax(1)  # [seen * rows]
            by_d = (x[:rows] @ s.T).argmax(1)  # [rows] of the first class
        passes = ((by_d == 0) == (nearest[:rows] == 0)).repeat(len(classes))
        return Replay(Rows(x[passes], classes[nearest[passes]]), int((~passes).sum()))
