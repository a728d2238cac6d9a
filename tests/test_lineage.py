"""A lineage is a function of its windows: failures, retirements, repeats and snapshots change nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers import CLASSES, GENESIS, WORLD

from stream_cgzsl.errors import Cancelled, TrainingFailed, UsageError
from stream_cgzsl.learners.closed_form import ClosedForm
from stream_cgzsl.learners.interface import Monitor
from stream_cgzsl.lineage import Configuration, Lineage, Outcome
from stream_cgzsl.windows.gather import Gathered
from stream_cgzsl.windows.window import Description, Window

CONFIGURATION = Configuration("closed-form", {}, 10**9)
A, B, C, D = CLASSES[:4]


def lineage() -> Lineage:
    return Lineage(GENESIS, CONFIGURATION, "cpu")


def gathered(
    number: int,
    describe: tuple[str, ...] = (),
    teach: tuple[str, ...] = (),
    retire: tuple[str, ...] = (),
    ids: frozenset[bytes] = frozenset(),
) -> Gathered:
    window = Window.from_arrays(
        number,
        {c: WORLD.attribute(c) for c in describe},
        {c: WORLD.draw(c, 10, number) for c in teach},
        retire,
    )
    return Gathered(window, {}, [], str, ids)


STORY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("describe", {"describe": (A, B, C)}),
    ("train", {"teach": (A, B), "ids": frozenset([b"1" * 16])}),
    ("train", {"describe": (D,), "teach": (C,), "ids": frozenset([b"2" * 16, b"3" * 16])}),
    ("describe", {"retire": (A,)}),
    ("train", {"teach": (B, D)}),
)


def tell(line: Lineage, first: int = 1) -> list[Outcome]:
    """The story from window `first` on."""
    return [line.apply(kind, gathered(n, **what)) for n, (kind, what) in enumerate(STORY[first - 1 :], first)]


def test_the_classes_of_a_generation_are_those_that_live() -> None:
    line = lineage()
    outcomes = tell(line)
    assert [(o.kind, o.generation.class_ids, o.generation.seen.tolist(), o.withdrawn) for o in outcomes] == [
        ("describe", (A, B, C), [False, False, False], ()),
        ("train", (A, B, C), [True, True, False], ()),
        ("train", (A, B, C, D), [True, True, True, False], ()),
        ("describe", (B, C, D), [True, True, False], (A,)),
        ("train", (B, C, D), [True, True, True], ()),
    ]
    assert (line.number, line.live) == (5, {B, C, D})


def test_readable_names_are_kept_and_fall_back_to_the_id() -> None:
    line = lineage()
    described = (Description(A, WORLD.attribute(A), "a readable name"), Description(B, WORLD.attribute(B)))
    line.apply("describe", Gathered(Window(1, described), {}, [], str, frozenset()))
    assert line.names == {A: "a readable name", B: B}


def test_a_class_described_anew_after_its_retirement_starts_fresh() -> None:
    line = lineage()
    tell(line)
    outcome = line.apply("describe", gathered(6, retire=(B,), describe=(B,)))
    assert (outcome.generation.class_ids, outcome.generation.seen.tolist(), outcome.withdrawn) == (
        (B, C, D),
        [False, True, True],
        (),
    )


def test_retiring_a_stranger_withdraws_nothing() -> None:
    assert lineage().apply("describe", gathered(1, retire=(A,))).withdrawn == ()


def test_ids_are_remembered_for_two_windows() -> None:
    line = lineage()
    known = []
    for number in range(1, 5):
        line.apply("describe", gathered(number, ids=frozenset([bytes([number]) * 16])))
        known.append(sorted(digest[0] for digest in line.known_ids))
    assert known == [[1], [1, 2], [2, 3], [3, 4]]


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
    line = lineage()
    tell(line)
    with monkeypatch.context() as patched:
        patched.setattr(ClosedForm, "fit", Failing(error))
        outcome = line.apply("train", gathered(6, describe=(A,), teach=(A,), retire=(C,), ids=frozenset([b"9" * 16])))
    assert (outcome.kind, outcome.error) == ("failed", f"{type(error).__name__}: {error}")
    assert (outcome.generation.class_ids, outcome.generation.seen.tolist()) == ((A, B, D), [False, True, True])
    assert outcome.withdrawn == (C,)
    assert (line.number, line.live) == (6, {A, B, D})
    assert line.apply("train", gathered(7, teach=(A,))).generation.seen.all()


def test_a_failed_window_leaves_the_weights_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but features in it: the generation differs from the one before in its number alone."""
    line = lineage()
    before = tell(line)[-1].generation
    monkeypatch.setattr(ClosedForm, "fit", Failing(TrainingFailed("no")))
    after = line.apply("train", gathered(6, teach=(B, C))).generation
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
def test_whatever_finite_numbers_come_a_window_is_trained_or_failed(rows: Any) -> None:
    line = lineage()
    line.apply("describe", gathered(1, describe=(A, B, C)))
    for number in (2, 3):
        features = {c: np.asarray(rows, np.float32) for c in (A, B)}
        outcome = line.apply("train", Gathered(Window.from_arrays(number, {}, features), {}, [], str, frozenset()))
        assert outcome.kind in ("train", "failed")
        assert np.isfinite(outcome.generation.scores(WORLD.draw(C, 5, 2))).all()


def test_an_unforeseen_error_is_not_taken_for_bad_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClosedForm, "fit", Failing(KeyError("a bug")))
    with pytest.raises(KeyError):
        lineage().apply("train", gathered(1, describe=(A,), teach=(A,)))


class Stopped(Monitor):
    def cancelled(self) -> bool:
        return True


def test_a_window_that_was_cancelled_leaves_everything_as_it_was() -> None:
    line, other = lineage(), lineage()
    tell(line)
    tell(other)
    window = gathered(6, describe=(A,), teach=(A, B), ids=frozenset([b"9" * 16]))
    with pytest.raises(Cancelled):
        line.apply("train", window, Stopped())
    assert line.snapshot() == other.snapshot()
    assert line.apply("train", window).generation.digest == other.apply("train", window).generation.digest


# ---- snapshots


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_restored_lineage_goes_on_with_the_same_digests(at: int) -> None:
    line = lineage()
    expected = [o.generation.digest for o in tell(line)]
    half = lineage()
    for number, (kind, what) in enumerate(STORY[:at], 1):
        half.apply(kind, gathered(number, **what))
    restored = lineage()
    restored.restore(half.snapshot())
    assert (restored.number, restored.names, restored.known_ids) == (half.number, half.names, half.known_ids)
    assert [o.generation.digest for o in tell(restored, at + 1)] == expected[at:]
    assert restored.snapshot() == line.snapshot()


def test_a_snapshot_of_nothing_can_be_restored() -> None:
    restored = lineage()
    restored.restore(lineage().snapshot())
    assert [o.generation.digest for o in tell(restored)] == [o.generation.digest for o in tell(lineage())]


@pytest.mark.parametrize("data", [b"", b"not a snapshot", bytes(100)])
def test_bytes_that_are_no_snapshot_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a learner's snapshot"):
        lineage().restore(data)


def test_a_snapshot_of_another_stream_is_refused() -> None:
    other = Lineage(GENESIS.model_copy(update={"features": 17}), CONFIGURATION, "cpu")
    with pytest.raises(ValueError, match="17"):
        lineage().restore(other.snapshot())


# ---- configuration


def test_the_digest_of_a_configuration_sees_every_part() -> None:
    digests = {
        Configuration("closed-form", {}, 10).digest,
        Configuration("episodic", {}, 10).digest,
        Configuration("closed-form", {"a": 1}, 10).digest,
        Configuration("closed-form", {"a": 1.5}, 10).digest,
        Configuration("closed-form", {}, 11).digest,
    }
    assert len(digests) == 5
    assert Configuration("x", {"a": 1, "b": 2}, 1).digest == Configuration("x", {"b": 2, "a": 1}, 1).digest


def test_an_unknown_learner_is_a_matter_of_usage() -> None:
    with pytest.raises(UsageError, match="there is no learner 'oracle'"):
        Lineage(GENESIS, Configuration("oracle", {}, 1), "cpu")
