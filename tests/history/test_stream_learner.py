"""A stream's learner is a function of its windows, whatever fails, is retired, is sent twice or is restored."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers import CLASSES, GENESIS, WORLD

from stream_cgzsl.errors import Cancelled, TrainingFailed, UsageError
from stream_cgzsl.history.stream_learner import Configuration, Outcome, Step, StreamLearner, apply_window
from stream_cgzsl.learners.interface import Monitor
from stream_cgzsl.learners.kernel.closed_form import ClosedForm
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.window import Description, Window

CONFIGURATION = Configuration("closed-form", {}, 10**9)
A, B, C, D = CLASSES[:4]


def new_learner() -> StreamLearner:
    return StreamLearner(GENESIS, CONFIGURATION, "cpu")


def gathered(
    number: int,
    describe: tuple[str, ...] = (),
    teach: tuple[str, ...] = (),
    retire: tuple[str, ...] = (),
    ids: frozenset[bytes] = frozenset(),
) -> Gathered:
    window = Window.from_arrays(
        number, {c: WORLD.attribute(c) for c in describe}, {c: WORLD.draw(c, 10, number) for c in teach}, retire
    )
    return Gathered(window, {}, [], Future(), ids)


WINDOWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("describe", {"describe": (A, B, C)}),
    ("train", {"teach": (A, B), "ids": frozenset([b"1" * 16])}),
    ("train", {"describe": (D,), "teach": (C,), "ids": frozenset([b"2" * 16, b"3" * 16])}),
    ("describe", {"retire": (A,)}),
    ("train", {"teach": (B, D)}),
)


def learn(learner: StreamLearner, first: int = 1) -> list[Outcome]:
    """The windows from number `first` on."""
    return [learner.learn(kind, gathered(n, **what)) for n, (kind, what) in enumerate(WINDOWS[first - 1 :], first)]


def test_a_generation_has_the_classes_that_are_live() -> None:
    learner = new_learner()
    outcomes = learn(learner)
    assert [(o.kind, o.generation.class_ids, o.generation.seen.tolist()) for o in outcomes] == [
        ("describe", (A, B, C), [False, False, False]),
        ("train", (A, B, C), [True, True, False]),
        ("train", (A, B, C, D), [True, True, True, False]),
        ("describe", (B, C, D), [True, True, False]),
        ("train", (B, C, D), [True, True, True]),
    ]
    assert (learner.number, learner.live) == (5, {B, C, D})


def test_readable_names_are_kept_and_fall_back_to_the_id() -> None:
    learner = new_learner()
    described = (Description(A, WORLD.attribute(A), "a readable name"), Description(B, WORLD.attribute(B)))
    learner.learn("describe", Gathered(Window(1, described), {}, [], Future(), frozenset()))
    assert learner.names == {A: "a readable name", B: B}


def test_a_class_described_again_after_its_retirement_starts_without_examples() -> None:
    learner = new_learner()
    learn(learner)
    generation = learner.learn("describe", gathered(6, retire=(B,), describe=(B,))).generation
    assert (generation.class_ids, generation.seen.tolist()) == ((B, C, D), [False, True, True])
    assert learner.live == {B, C, D}


def test_retiring_an_unknown_class_changes_nothing() -> None:
    learner = new_learner()
    learner.learn("describe", gathered(1, describe=(B,)))
    learner.learn("describe", gathered(2, retire=(A,)))
    assert learner.live == {B}


def test_ids_are_remembered_for_two_windows() -> None:
    learner = new_learner()
    known = []
    for number in range(1, 5):
        learner.learn("describe", gathered(number, ids=frozenset([bytes([number]) * 16])))
        known.append(sorted(digest[0] for digest in learner.known_ids))
    assert known == [[1], [1, 2], [2, 3], [3, 4]]


def test_windows_without_ids_do_not_make_earlier_ones_forgotten() -> None:
    learner = new_learner()
    learner.learn("train", gathered(1, describe=(A,), ids=frozenset([b"1" * 16])))
    for number in (2, 3):
        learner.learn("describe", gathered(number, describe=(B,)))
    assert learner.known_ids == {b"1" * 16}


def test_a_window_of_an_older_version_is_applied_by_its_rule() -> None:
    learner: StreamLearner | None = new_learner()
    assert learner is not None
    learner.learn("train", gathered(1, describe=(A,), ids=frozenset([b"1" * 16])))
    for number in (2, 3):
        step = Step(number, "describe", None, CONFIGURATION, every_window_counts=True)
        learner, _ = apply_window(learner, step, gathered(number, describe=(B,)), never)
    assert learner.known_ids == frozenset()


# ---- failure


class Failing:
    """A `fit` that fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        TrainingFailed("not finite"),
        MemoryError("8 GB"),
        torch.OutOfMemoryError("CUDA out of memory"),
        torch.linalg.LinAlgError("not positive-definite"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_window_that_cannot_be_trained_is_described(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    learner = new_learner()
    learn(learner)
    with monkeypatch.context() as patched:
        patched.setattr(ClosedForm, "fit", Failing(error))
        outcome = learner.learn(
            "train", gathered(6, describe=(A,), teach=(A,), retire=(C,), ids=frozenset([b"9" * 16]))
        )
    assert (outcome.kind, outcome.error) == ("failed", f"{type(error).__name__}: {error}")
    assert (outcome.generation.class_ids, outcome.generation.seen.tolist()) == ((A, B, D), [False, True, True])
    assert (learner.number, learner.live) == (6, {A, B, D})
    assert learner.learn("train", gathered(7, teach=(A,))).generation.seen.all()


def test_a_failed_window_does_not_change_the_projections(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has nothing but features, so the generation differs from the one before only in its number."""
    learner = new_learner()
    before = learn(learner)[-1].generation
    monkeypatch.setattr(ClosedForm, "fit", Failing(TrainingFailed("no")))
    after = learner.learn("train", gathered(6, teach=(B, C))).generation
    for name in ("vectors", "biases", "centre"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((3, 16)),
        np.full((3, 16), 3e38),
        np.full((3, 16), 1e-45),
        np.ones((1, 16)),
        np.ones((50, 16)),
        np.eye(16) * 3e38,
        np.tile(np.geomspace(1e-45, 3e38, 16), (4, 1)),
    ],
    ids=["zero", "huge", "tiny", "one row", "equal rows", "huge axes", "all scales"],
)
def test_with_any_finite_numbers_a_window_is_trained_or_failed(rows: Any) -> None:
    learner = new_learner()
    learner.learn("describe", gathered(1, describe=(A, B, C)))
    for number in (2, 3):
        features = {c: np.asarray(rows, np.float32) for c in (A, B)}
        outcome = learner.learn(
            "train", Gathered(Window.from_arrays(number, {}, features), {}, [], Future(), frozenset())
        )
        assert outcome.kind in ("train", "failed")
        assert np.isfinite(outcome.generation.scores(WORLD.draw(C, 5, 2))).all()


def test_an_unexpected_error_is_not_treated_as_bad_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClosedForm, "fit", Failing(KeyError("a bug")))
    with pytest.raises(KeyError):
        new_learner().learn("train", gathered(1, describe=(A,), teach=(A,)))


class Stopped(Monitor):
    def cancelled(self) -> bool:
        return True


def test_a_cancelled_window_leaves_everything_as_it_was() -> None:
    learner, other = new_learner(), new_learner()
    learn(learner)
    learn(other)
    window = gathered(6, describe=(A,), teach=(A, B), ids=frozenset([b"9" * 16]))
    with pytest.raises(Cancelled):
        learner.learn("train", window, Stopped())
    assert learner.snapshot() == other.snapshot()
    assert learner.learn("train", window).generation.digest == other.learn("train", window).generation.digest


# ---- snapshots


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_restored_learner_continues_with_the_same_digests(at: int) -> None:
    learner = new_learner()
    expected = [o.generation.digest for o in learn(learner)]
    half = new_learner()
    for number, (kind, what) in enumerate(WINDOWS[:at], 1):
        half.learn(kind, gathered(number, **what))
    restored = new_learner()
    restored.restore(half.snapshot())
    assert (restored.number, restored.names, restored.known_ids) == (half.number, half.names, half.known_ids)
    assert [o.generation.digest for o in learn(restored, at + 1)] == expected[at:]
    assert restored.snapshot() == learner.snapshot()


def test_an_untrained_learner_can_be_restored() -> None:
    restored = new_learner()
    restored.restore(new_learner().snapshot())
    assert [o.generation.digest for o in learn(restored)] == [o.generation.digest for o in learn(new_learner())]


@pytest.mark.parametrize("data", [b"", b"not a snapshot", bytes(100)])
def test_bytes_that_are_not_a_snapshot_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a learner's snapshot"):
        new_learner().restore(data)


def test_a_snapshot_of_another_stream_is_refused() -> None:
    other = StreamLearner(GENESIS.model_copy(update={"features": 17}), CONFIGURATION, "cpu")
    with pytest.raises(ValueError, match="17"):
        new_learner().restore(other.snapshot())


# ---- applying windows


def never(number: int) -> StreamLearner:
    raise AssertionError(f"the learner after window {number} is not needed")


def test_a_rollback_continues_from_the_learner_after_an_earlier_window() -> None:
    learner, earlier = new_learner(), new_learner()
    learn(learner)
    second = [earlier.learn(kind, gathered(n, **what)) for n, (kind, what) in enumerate(WINDOWS[:2], 1)][-1]
    asked = []

    def after(number: int) -> StreamLearner:
        asked.append(number)
        return earlier

    learner, outcome = apply_window(learner, Step(6, "rollback", 2, CONFIGURATION), None, after)
    assert (asked, learner.number, learner.live, outcome.kind) == ([2], 6, {A, B, C}, "rollback")
    np.testing.assert_array_equal(outcome.generation.vectors, second.generation.vectors)
    assert outcome.generation.number == 6


def test_a_rollback_needs_neither_a_learner_nor_inputs() -> None:
    earlier = new_learner()
    learn(earlier)
    learner, outcome = apply_window(None, Step(9, "rollback", 5, CONFIGURATION), None, lambda _: earlier)
    assert (learner.number, outcome.generation.class_ids) == (9, (B, C, D))


def test_a_window_is_applied_under_the_configuration_of_its_step() -> None:
    smaller = replace(CONFIGURATION, memory_bytes=1)
    learner = new_learner()
    learner.learn("describe", gathered(1, describe=(A, B)))
    window = gathered(2, teach=(A,), ids=frozenset([b"1" * 16]))
    applied, outcome = apply_window(learner, Step(2, "train", None, smaller), window, never)
    assert (applied.configuration, applied.live, applied.known_ids) == (smaller, {A, B}, {b"1" * 16})
    assert outcome.generation.digest == learner.learn("train", window).generation.digest


# ---- configuration


def test_the_same_configuration_keeps_the_same_learner() -> None:
    learner = new_learner()
    assert learner.with_configuration(replace(CONFIGURATION)) is learner


def test_a_learner_of_another_kind_cannot_take_over() -> None:
    learner = new_learner()
    learn(learner)
    with pytest.raises(UsageError, match=r"'ridge' with \{\} cannot continue from there.*another --prefix"):
        learner.with_configuration(Configuration("ridge", {}, 1))


def test_before_the_first_window_any_learner_can_take_over() -> None:
    other = new_learner().with_configuration(Configuration("ridge", {}, 1))
    assert other.configuration.learner == "ridge"


def test_the_digest_of_a_configuration_covers_every_part() -> None:
    digests = {
        Configuration("closed-form", {}, 10).digest,
        Configuration("episodic", {}, 10).digest,
        Configuration("closed-form", {"a": 1}, 10).digest,
        Configuration("closed-form", {"a": 1.5}, 10).digest,
        Configuration("closed-form", {}, 11).digest,
    }
    assert len(digests) == 5
    assert Configuration("x", {"a": 1, "b": 2}, 1).digest == Configuration("x", {"b": 2, "a": 1}, 1).digest


def test_an_unknown_learner_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="there is no learner 'oracle'"):
        StreamLearner(GENESIS, Configuration("oracle", {}, 1), "cpu")
