"""The process of `evidence` once more: dense, over all classes, from nothing but what a snapshot holds; float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from worlds import Array

from stream_cgzsl.learners.interface import Snapshot, Space
from stream_cgzsl.learners.kernel.belief import Belief
from stream_cgzsl.learners.kernel.class_process import measured
from stream_cgzsl.learners.kernel.evidence_state import EvidenceState
from stream_cgzsl.learners.kernel.frame import Frame, chosen, framed
from stream_cgzsl.learners.kernel.update import Update
from stream_cgzsl.learners.numerics.triangular import mirrored
from stream_cgzsl.learners.statistics.moments import Moments
from stream_cgzsl.windows.window import Window

CPU = torch.device("cpu")


def state_of(space: Space, *windows: Window) -> EvidenceState:
    """What `evidence` keeps of these windows."""
    state = EvidenceState(space)
    for window in windows:
        Update(state, window, CPU)
        if window.features:
            state.learn(Moments.of(window.features, space.features, state.transform), CPU)
    return state


def frame_of(state: EvidenceState, weights: torch.Tensor, offset: float = 0.05) -> tuple[Frame, Belief]:
    """The frame with these attribute weights (logarithms), every class with examples a landmark, and the belief."""
    landmarks = chosen(state, 10**6)
    frame = framed(state, measured(state, bool(state.space.shared), CPU), weights, offset, landmarks, {})
    seen = frame.observed(state.classes(state.places.with_examples(), CPU))
    return frame, Belief.of([seen], len(landmarks), frame.centre)


class Dense(NamedTuple):
    """By class id."""

    vectors: dict[str, Array]
    biases: dict[str, float]
    projections: dict[str, Array]
    decided: dict[str, float]


def kernel(x: Array, y: Array) -> Array:
    return 0.6 * x @ y.T + 0.4 * np.exp(-0.5 * np.square(x[:, None] - y).sum(axis=2))


def dense(snapshot: Snapshot, exact: bool = True) -> Dense:
    """The posterior of every class given all examples, in the snapshot's frame.

    Not `exact`: covariances of different classes are what the landmarks say of them.
    """
    state = {name.removeprefix("state."): array for name, array in snapshot.arrays.items()}
    frame = {name.removeprefix("frame."): array for name, array in snapshot.arrays.items()} | snapshot.meta["frame"]
    frame["metric"] = mirrored(frame["metric"], len(frame["centre"]))
    ids = snapshot.meta["state"]["class_ids"]
    alive = np.array([class_id is not None for class_id in ids])
    has = np.flatnonzero(state["counts"] > 0)
    attributes, n = state["attributes"].astype(np.float64), state["counts"][has]
    p = (attributes - frame["attribute_centre"]) * frame["attribute_gains"]
    k = kernel(p, p)
    if not exact:
        u = frame["landmarks"]
        kuu, kpu = kernel(u, u), kernel(p, u)
        q = kpu @ np.linalg.solve(kuu + 1e-6 * kuu.diagonal().mean() * np.eye(len(u)), kpu.T)
        k = q + np.diag(np.maximum(k.diagonal() - q.diagonal(), 0))
    k = k + 0.2 * np.eye(len(k))
    e = np.zeros((len(ids), len(frame["centre"])))
    if len(frame["vector_centre"]):
        lengths = np.maximum(np.linalg.norm(attributes, axis=1, keepdims=True), 1e-12)
        e = (attributes / lengths - frame["vector_centre"]) * frame["vector_gain"]
    r = k[:, has] @ np.linalg.inv(k[np.ix_(has, has)] + np.diag(frame["noise"] / n))
    projections = e + r @ (state["means"] - frame["centre"] - e[has])
    decided = np.zeros(len(ids))
    decided[has] = r[has].diagonal()
    y = projections @ frame["metric"]
    energy = np.maximum((y * projections).sum(axis=1), 1e-12)
    vectors = y * energy[:, None] ** -0.25 * frame["gain"] / frame["divisor"]
    biases = (-0.35 * frame["signal"] * energy**0.75 - frame["offset"] * decided**2) / frame["divisor"]
    found = [dict(zip(np.array(ids)[alive], of[alive], strict=True)) for of in (vectors, biases, projections, decided)]
    return Dense(*found)
