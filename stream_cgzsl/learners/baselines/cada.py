"""CADA-VAE, the networks and losses: Schönfeld, Ebrahimi, Sinha, Darrell and Akata, "Generalized Zero- and Few-Shot
Learning via Aligned Variational Autoencoders", CVPR 2019.

Two autoencoders, of features and of attributes, with one latent space: each reconstructs from the other's code as well,
and the two codes of a row are pulled together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from stream_cgzsl.learners.baselines.networks import Layers, xavier
from stream_cgzsl.learners.baselines.scaling import Range
from stream_cgzsl.learners.baselines.vae import divergence
from stream_cgzsl.schemas import Array

KINDS = ("relu", "linear")

PARTS = ("feature_encoder", "feature_decoder", "attribute_encoder", "attribute_decoder")


@dataclass(frozen=True)
class Warmup:
    """A weight that grows linearly from 0 to `factor` between two epochs."""

    factor: float
    start: int
    end: int

    def at(self, epoch: int) -> float:
        return self.factor * min(max((epoch - self.start) / (self.end - self.start), 0.0), 1.0)


WEIGHTS = {
    "divergence": Warmup(0.25, 0, 93),
    "cross_reconstruction": Warmup(2.37, 21, 75),
    "alignment": Warmup(8.13, 6, 22),
}
"""The authors', for 100 epochs."""


def noised(mean: Tensor, log_variance: Tensor, rng: torch.Generator) -> Tensor:
    """mean + exp(log_variance) z as in the authors' code, which draws one z for all latent numbers of a row."""
    z = torch.randn(len(mean), 1, generator=rng).to(mean.device)
    return mean + log_variance.exp() * z


def alignment(mean: Tensor, log_variance: Tensor, other: Tensor, other_log_variance: Tensor) -> Tensor:
    """The 2-Wasserstein distance of the two codes of each row, summed over rows. All are [rows, latent]."""
    means = (mean - other).square().sum(1)
    deviations = ((0.5 * log_variance).exp() - (0.5 * other_log_variance).exp()).square().sum(1)
    return (means + deviations + 1e-12).sqrt().sum()  # a root has no gradient at 0


@dataclass(frozen=True, eq=False)
class Cada:
    parts: tuple[Layers, Layers, Layers, Layers]  # as in `PARTS`
    scale: Range

    @classmethod
    def started(
        cls, features: int, attributes: int, latent: int, share: float, scale: Range, rng: torch.Generator
    ) -> Cada:
        """`share` is of the authors' hidden sizes."""
        hidden = [max(1, round(share * size)) for size in (1560, 1660, 1450, 665)]
        sizes = (
            (features, hidden[0], 2 * latent),
            (latent, hidden[1], features),
            (attributes, hidden[2], 2 * latent),
            (latent, hidden[3], attributes),
        )
        device, start = scale.least.device, xavier(0.5)
        one, two, three, four = (Layers.started(size, KINDS, rng, device, start) for size in sizes)
        return cls((one, two, three, four), scale)

    @property
    def parameters(self) -> list[Tensor]:
        return [parameter for part in self.parts for parameter in part.parameters]

    def losses(self, x: Tensor, a: Tensor, rng: torch.Generator) -> dict[str, Tensor]:
        """Of scaled rows and their attributes, summed over both as the authors sum them."""
        encode, decode, encode_a, decode_a = self.parts
        mean, log_variance = encode(x).chunk(2, 1)
        mean_a, log_variance_a = encode_a(a).chunk(2, 1)
        z, z_a = noised(mean, log_variance, rng), noised(mean_a, log_variance_a, rng)
        own_x, cross_x = decode(torch.cat((z, z_a))).chunk(2)
        own_a, cross_a = decode_a(torch.cat((z_a, z))).chunk(2)
        return {
            "reconstruction": (own_x - x).abs().sum() + (own_a - a).abs().sum(),
            "cross_reconstruction": (cross_x - x).abs().sum() + (cross_a - a).abs().sum(),
            "divergence": divergence(mean, log_variance) + divergence(mean_a, log_variance_a),
            "alignment": alignment(mean, log_variance, mean_a, log_variance_a),
        }

    def code(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Of rows as they came, with noise: [rows, latent]"""
        mean, log_variance = self.parts[0](self.scale.scaled(x)).chunk(2, 1)
        return noised(mean, log_variance, rng)

    def code_of_attributes(self, a: Tensor, rng: torch.Generator) -> Tensor:
        mean, log_variance = self.parts[2](a).chunk(2, 1)
        return noised(mean, log_variance, rng)

    def features(self, code: Tensor) -> Tensor:
        """Rows in the space they came from."""
        return self.scale.restored(self.parts[1](code))

    def encoder(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The layers from rows as they come to the mean of their code: weights and bias each."""
        (w1, b1), (w2, b2) = self.parts[0].weights
        latent = len(w2) // 2
        return self.scale.folded(w1, b1), (w2[:latent], b2[:latent])

    def arrays(self) -> dict[str, Array]:
        arrays = self.scale.arrays()
        for name, part in zip(PARTS, self.parts, strict=True):
            arrays |= part.arrays(name)
        return arrays

    @classmethod
    def loaded(cls, arrays: Mapping[str, Array], device: torch.device) -> Cada:
        one, two, three, four = (Layers.loaded(name, arrays, KINDS, device) for name in PARTS)
        return cls((one, two, three, four), Range.loaded(arrays, device))


def total(losses: Mapping[str, Tensor], epoch: int) -> Tensor:
    """The loss of an epoch: reconstruction, and the others by their weights."""
    return losses["reconstruction"] + torch.stack([w.at(epoch) * losses[name] for name, w in WEIGHTS.items()]).sum()
