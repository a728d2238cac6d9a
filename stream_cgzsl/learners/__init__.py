"""How a window becomes a generation. `create` makes a learner by name and imports its module only then."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners.interface import Factory, Keeps, Learner, Space

_FACTORIES = {
    "evidence": "kernel.evidence:Evidence",
    "episodic": "kernel.episodic:Episodic",
    "closed-form": "kernel.closed_form:ClosedForm",
    "ridge": "kernel.ridge:Ridge",
    "paper": "gan.paper:Paper",
    "authors-code": "gan.authors_code:AuthorsCode",
    "adversarial": "gan.adversarial:Adversarial",
    "joint": "kernel.joint:Joint",
    "ewc": "baselines.ewc:Ewc",
    "a-gem": "baselines.a_gem:AGem",
    "seq-fclswgan": "baselines.seq_fclswgan:SeqFclswgan",
    "seq-cvae": "baselines.seq_cvae:SeqCvae",
    "cv-mem": "baselines.cv_mem:CvMem",
    "seq-cada": "baselines.seq_cada:SeqCada",
    "ca-mem": "baselines.ca_mem:CaMem",
    "tf-gczsl": "baselines.tf_gczsl:TfGczsl",
    "nm-zsl": "baselines.nm_zsl:NmZsl",
}

LEARNERS = tuple(_FACTORIES)
"""Every learner's name."""

BASELINES = tuple(name for name, factory in _FACTORIES.items() if factory.startswith("baselines."))
"""The systems the paper compares itself with."""

BOUNDS = ("joint",)
"""Learners that keep every example: an upper bound to compare with, never to be run on a stream."""


def keeps(name: str) -> Keeps:
    """What the learner of this name keeps of its examples. Raises `UsageError` for unknown names."""
    found: Keeps = _class(name).keeps
    return found


def create(name: str, space: Space, options: Mapping[str, Any] | None = None, device: str = "cpu") -> Learner:
    """An untrained learner. Raises `UsageError` for unknown names, options and devices."""
    make: Factory = _class(name)
    return make(space, options or {}, device)


def _class(name: str) -> Any:
    if name not in _FACTORIES:
        raise UsageError(f"there is no learner {name!r}; there are: {', '.join(LEARNERS)}")
    module, factory = _FACTORIES[name].split(":")
    return getattr(import_module(f"{__name__}.{module}"), factory)
