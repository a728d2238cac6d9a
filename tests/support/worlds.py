"""Small worlds for tests: classes with attributes, and features that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.learners.interface import Space
from stream_cgzsl.windows.window import Window

Array = npt.NDArray[Any]

SPACE = Space(attributes=6, features=16, signed=False, seed=3)


class World:
    """Class `c07` has a random attribute vector; its features are a fixed linear image of it plus noise."""

    def __init__(self, space: Space = SPACE, classes: int = 16, noise: float = 0.6, seed: int = 0) -> None:
        self.space = space
        self.random = np.random.default_rng(seed)
        image = self.random.normal(size=(space.attributes, space.features))
        self.noise = noise
        self.vectors = {f"c{i:04}": self.random.normal(size=space.attributes) for i in range(classes)}
        self._means = {c: vector @ image for c, vector in self.vectors.items()}
        if space.shared:
            self.vectors = {c: mean + 0.3 * self.random.normal(size=len(mean)) for c, mean in self._means.items()}

    def ids(self, first: int, end: int) -> list[str]:
        return list(self.vectors)[first:end]

    def rows(self, class_id: str, count: int) -> Array:
        mean = self._means[class_id]
        rows = mean + self.noise * np.linalg.norm(mean) / 4 * self.random.normal(size=(count, len(mean)))
        return np.asarray(rows if self.space.signed else np.maximum(rows, 0), np.float32)

    def window(self, number: int, described: Sequence[str] = (), learned: Sequence[str] = (), rows: int = 12) -> Window:
        return Window.from_arrays(
            number, {c: self.vectors[c] for c in described}, {c: self.rows(c, rows) for c in learned}
        )


def stream(world: World) -> list[Window]:
    """Three windows: new seen and unseen classes; unseen ones that become seen and one that returns; a retirement."""
    ids = world.ids
    third = world.window(3, ids(13, 16), [*ids(5, 6), *ids(13, 15)])
    return [
        world.window(1, ids(0, 8), ids(0, 6)),
        world.window(2, ids(8, 13), [*ids(0, 1), *ids(6, 12)]),
        Window(3, third.described, (ids(1, 2)[0],), third.features),
    ]


def quick_options() -> dict[str, dict[str, Any]]:
    """By learner: small networks, trained for a short while. What learners promise is the same."""
    head = {"epochs": 4, "seen_samples": 20, "unseen_samples": 20, "head_epochs": 4}
    # With the authors' dropout a hidden unit is trained on two or three of a dozen rows, and looks as if it kept them.
    cvae = {"hidden": 32, "decoder_hidden": 16, "latent": 4, "batch": 100, "dropout": 0.1}
    return {
        **{name: {"hidden": 16, "epochs": 2} for name in ("paper", "authors-code")},
        "adversarial": {"hidden": 16, "max_iterations": 12},
        **{name: {"hidden": 16, "epochs": 4} for name in ("ewc", "a-gem")},
        "nm-zsl": {"hidden": 16, "epochs": 12},
        **{name: {**head, "width": 0.02, "latent": 4, "batch": 100} for name in ("seq-cada", "ca-mem", "tf-gczsl")},
        "seq-fclswgan": {**head, "hidden": 16, "critic_steps": 2, "batch": 100, "classifier_epochs": 3},
        **{name: {**head, **cvae} for name in ("seq-cvae", "cv-mem")},
    }


def arrays_equal(one: Mapping[str, Array], two: Mapping[str, Array]) -> bool:
    """Same names, types, shapes and bytes."""
    return one.keys() == two.keys() and all(
        one[n].dtype == two[n].dtype and one[n].shape == two[n].shape and one[n].tobytes() == two[n].tobytes()
        for n in one
    )
