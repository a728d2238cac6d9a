"""The losses of the method, each with its equation.

Plain functions of tensors. `x` are features and `s` identifier projections at length 1 (see `unit`), so that a product
is a cosine. Where a term is meant for one network only, the other network's tensor is detached here and nowhere else:
the table says what a gradient of each term can reach.

| term            | moves | x, s                                        |
|-----------------|-------|---------------------------------------------|
| `gan_projector` | D     | real and generated features against S_y     |
| `gan_generator` | G     | generated features against S_y              |
| `rcl`           | D     | real and replayed features, seen classes    |
| `pcl`           | G     | generated seen features, seen classes       |
| `snl`           | D     | generated unseen features, all classes      |
| `sal`           | G     | mean generated features                     |
| `nuclear`       | D     | projections against class means             |
| `first_moment`  | G     | generated features against class means      |
| `second_moment` | G     | generated features against their variance   |
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

TINY = 1e-6
"""Below this a logarithm goes on as its tangent: its slope ends at a million, and is never 0."""


def unit(x: Tensor) -> Tensor:
    """Each row at length 1; a row of zeros stays zero."""
    return F.normalize(x, dim=-1)


def likeness(cosine: Tensor, signed: bool) -> Tensor:
    """A cosine as a probability: as it is for non-negative features, (1 + cos)/2 where it can be negative."""
    return (1 + cosine) / 2 if signed else cosine


def log(p: Tensor) -> Tensor:
    """The logarithm, finite and with a gradient everywhere: also where a cosine is 0 or 1."""
    within = p.clamp(min=TINY)
    return within.log() + (p - within) / TINY


def gan_projector(x: Tensor, y: Tensor, fake: Tensor, fake_y: Tensor, s: Tensor, signed: bool) -> Tensor:
    """D's side of L_GAN = E log cos(x, S_y) + E log(1 - cos(x', S_y)), which D maximises: its negative.

    x: [n, features], y: [n], fake: [m, features], fake_y: [m], s: [classes, features]
    """
    real_p = likeness((x.detach() * s[y]).sum(1), signed)  # [n]
    fake_p = likeness((fake.detach() * s[fake_y]).sum(1), signed)  # [m]
    return -(log(real_p).mean() + log(1 - fake_p).mean())


def gan_generator(fake: Tensor, fake_y: Tensor, s: Tensor, signed: bool) -> Tensor:
    """G's side of L_GAN, E log(1 - cos(x', S_y)), which G minimises.

    fake: [m, features], fake_y: [m], s: [classes, features]
    """
    return log(1 - likeness((fake * s.detach()[fake_y]).sum(1), signed)).mean()


def gan_generator_non_saturating(fake: Tensor, fake_y: Tensor, s: Tensor, signed: bool) -> Tensor:
    """G's side in its non-saturating form, -E log cos(x', S_y): not printed; steep where G is bad, not where good."""
    return -log(likeness((fake * s.detach()[fake_y]).sum(1), signed)).mean()


def rcl(x: Tensor, y: Tensor, s: Tensor, scale: float) -> Tensor:
    """L_rcl = -E log softmax_c(k cos(x, S_c))_y over the classes of s: real and replayed features, on D."""
    return F.cross_entropy(scale * (x.detach() @ s.T), y)


def pcl(fake: Tensor, y: Tensor, s: Tensor, scale: float) -> Tensor:
    """L_pcl: the cross-entropy of `rcl` for generated features of seen classes, on G."""
    return F.cross_entropy(scale * (fake @ s.detach().T), y)


def snl(fake: Tensor, y: Tensor, s: Tensor, scale: float) -> Tensor:
    """L_snl: the cross-entropy of `rcl` for generated features of unseen classes over all classes, on D."""
    return F.cross_entropy(scale * (fake.detach() @ s.T), y)


def sal(fake_means: Tensor, means: Tensor, similarity: Tensor, near: Tensor, eps: float) -> Tensor:
    """L_sal = 1/N sum_i sum_{j in I_i} max(0, c_ij - (t_ij + eps))^2 + max(0, (t_ij - eps) - c_ij)^2, on G,

    with c_ij = cos(mu_j, mu'_i) and t_ij = cos(a_j, a_i). The n neighbours of class i are given by their means.

    fake_means: [classes, features], means: [classes, n, features] of length 1, similarity: [classes, n],
    near: [classes, n], 1 where there is such a neighbour and 0 where a class has fewer than n
    """
    cosine = torch.einsum("if,ijf->ij", unit(fake_means), means)  # [classes, n]
    excess = (cosine - (similarity + eps)).clamp(min=0)
    shortfall = ((similarity - eps) - cosine).clamp(min=0)
    return (near * (excess.square() + shortfall.square())).sum(1).mean()


def nuclear(projections: Tensor, means: Tensor) -> Tensor:
    """L_nuclear = |mu_c - S_c|^2, mean over the seen classes, on D; projections at their own length.

    projections: [seen, features], means: [seen, features]
    """
    return (means - projections).square().sum(1).mean()


def weighted_nuclear(projections: Tensor, means: Tensor, weights: Tensor) -> Tensor:
    """L_nuclear as a weighted mean: a mean of few examples counts less. weights: [seen]"""
    return (weights * (means - projections).square().sum(1)).sum() / weights.sum()


def first_moment(one: Tensor, other: Tensor, means: Tensor) -> Tensor:
    """E (x1 - mu).(x2 - mu) = |E x' - mu|^2 for two independent draws x1, x2 of each class, on G.

    one, other, means: [n, features]
    """
    return ((one - means) * (other - means)).sum(1).mean()


def second_moment(one: Tensor, other: Tensor, variance: Tensor) -> Tensor:
    """sum_f (sd'_f - sd_f)^2 with sd'^2 = E (x1 - x2)^2 / 2 within classes, on G: with the first moment, the squared

    Wasserstein distance of two Gaussians without correlations. Variances are taken to be at least 5 % of the mean one:
    the root of a coordinate that does not vary has no gradient.

    one, other: [n, features], variance: [features]
    """
    floor = 0.05 * variance.mean() + TINY
    made = (one - other).square().mean(0) / 2  # [features]
    return (made.clamp(min=floor).sqrt() - variance.clamp(min=floor).sqrt()).square().sum()


def neighbours(attributes: Tensor, seen: int, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """The n seen classes nearest to each class by attribute cosine, without itself; fewer classes give fewer columns.

    attributes: [classes, attributes], of which the first `seen` are of seen classes
    -> seen classes [classes, n], cosines [classes, n], 1 where there is a neighbour and else 0 [classes, n]
    """
    a = unit(attributes)
    cosine = a @ a[:seen].T  # [classes, seen]
    itself = torch.eye(len(a), seen, dtype=torch.bool, device=a.device)
    best = cosine.masked_fill(itself, -torch.inf).sort(dim=1, descending=True, stable=True).indices[:, :n]
    return best, cosine.gather(1, best), (~itself).gather(1, best).to(a.dtype)
