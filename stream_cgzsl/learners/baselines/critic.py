"""The critic of a Wasserstein GAN with gradient penalty, and its gradients written out.

critic(x, a) = w2 . leaky(W x + V a + b1) + b2. Its loss on n pairs of a real and a made row is

    mean critic(made) - mean critic(real) + penalty * mean (|d critic / dx| - 1)^2,

the last at random points between the two rows of a pair. Before its activation the hidden layer is linear in x, so at
such a point it needs no product of its own, and d critic / dx = (w2 * slopes) W. That is half the work of having the
penalty differentiated.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LEAK = 0.2


class Critic(NamedTuple):
    w: Tensor  # [hidden, features]
    v: Tensor  # [hidden, attributes]
    b1: Tensor  # [hidden]
    w2: Tensor  # [hidden]
    b2: Tensor  # [1]

    def __call__(self, x: Tensor, a: Tensor) -> Tensor:
        """[rows]"""
        h = F.linear(x, self.w, self.b1) + a @ self.v.T
        return F.leaky_relu(h, LEAK) @ self.w2 + self.b2


class Found(NamedTuple):
    distance: Tensor  # mean critic(real) - mean critic(made)
    penalty: Tensor  # mean (|d critic / dx| - 1)^2
    gradients: Critic


def slopes(h: Tensor) -> Tensor:
    return torch.where(h > 0, 1.0, LEAK)


@torch.no_grad()
def gradients(critic: Critic, real: Tensor, made: Tensor, a: Tensor, share: Tensor, penalty: float) -> Found:
    """Of the loss above by the critic's parameters.

    real, made: [n, features], a: [n, attributes], share: [n, 1], how much of the real row is in the point between
    """
    n = len(real)
    h = F.linear(torch.cat((real, made)), critic.w, critic.b1) + (a @ critic.v.T).repeat(2, 1)  # [2n, hidden]
    h_real, h_made = h[:n], h[n:]
    signs = torch.cat((real.new_full((n, 1), -1 / n), real.new_full((n, 1), 1 / n)))  # [2n, 1]
    by_h = signs * slopes(h) * critic.w2  # [2n, hidden]

    between = slopes(share * h_real + (1 - share) * h_made)  # [n, hidden]
    u = between * critic.w2
    g = u @ critic.w  # [n, features]
    lengths = torch.linalg.vector_norm(g, dim=1, keepdim=True).clamp_min(1e-12)
    by_g = (2 * penalty / n) * (lengths - 1) / lengths * g  # [n, features]
    by_u = by_g @ critic.w.T  # [n, hidden]

    outputs = F.leaky_relu(h, LEAK)
    found = Critic(
        w=torch.cat((by_h, u)).T @ torch.cat((real, made, by_g)),
        v=(by_h[:n] + by_h[n:]).T @ a,
        b1=by_h.sum(0),
        w2=(signs * outputs).sum(0) + (by_u * between).sum(0),
        b2=torch.zeros_like(critic.b2),
    )
    return Found(-(signs * outputs).sum(0) @ critic.w2, (lengths - 1).square().mean(), found)
