from __future__ import annotations

import torch
import torch.nn.functional as F

from stream_cgzsl.learners.baselines.a_gem import masked_cosine_loss, projected
from stream_cgzsl.learners.baselines.prototypes import cosine_loss

RNG = torch.Generator().manual_seed(0)


def flat(parts: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([part.flatten() for part in parts])


def drawn() -> list[torch.Tensor]:
    return [torch.randn(shape, generator=RNG) for shape in ((4, 3), (4,))]


def test_a_gradient_against_the_exemplars_is_made_orthogonal_to_theirs() -> None:
    g, r = drawn(), drawn()
    if flat(g) @ flat(r) > 0:
        r = [-part for part in r]
    found = flat(projected(g, r))
    assert abs(found @ flat(r)) < 1e-5
    torch.testing.assert_close(found, flat(g) - (flat(g) @ flat(r)) / flat(r).square().sum() * flat(r))


def test_a_gradient_that_helps_the_exemplars_stays() -> None:
    g = drawn()
    assert torch.equal(flat(projected(g, [2 * part for part in g])), flat(g))


def test_without_a_gradient_of_exemplars_nothing_changes() -> None:
    g = drawn()
    assert torch.equal(flat(projected(g, [torch.zeros_like(part) for part in g])), flat(g))


def test_a_masked_softmax_is_over_the_allowed_classes() -> None:
    x, prototypes = torch.randn(1, 4, generator=RNG), torch.randn(5, 4, generator=RNG)
    allowed = torch.tensor([[True, False, True, False, True]])
    found = masked_cosine_loss(x, torch.tensor([2]), prototypes, allowed, 10.0)
    torch.testing.assert_close(found, cosine_loss(x, torch.tensor([1]), prototypes[allowed[0]], 10.0))
    cosines = F.cosine_similarity(x, prototypes[allowed[0]])
    torch.testing.assert_close(found, -torch.log_softmax(10 * cosines, 0)[1])
