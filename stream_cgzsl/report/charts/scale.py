"""From values to positions on an axis, and the values of its ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Maps [low, high] to [0, 1]; a logarithmic one maps their logarithms. `ticks` lie inside."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return 0.5 if high == low else (value - low) / (high - low)


def _step(span: float, ticks: int) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that needs no more than `ticks` steps."""
    rough = span / max(1, ticks)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough * (1 - 1e-9))


def linear(values: Iterable[float], ticks: int = 5, zero: bool = False, most: float | None = None) -> Scale:
    """A scale around all values that ends at ticks. `zero` includes 0; no tick is above `most` if no value is."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    if high - low < 1e-9 * max(1.0, abs(high)):
        room = abs(high) * 0.1 if abs(high) > 1e-9 else 1.0
        low, high = (low, high + room) if zero else (low - room, high + room)
    step = _step(high - low, ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = tuple(float(f"{number * step:.10g}") for number in range(first, last + 1))
    if most is not None and max(known) <= most:
        marks = tuple(mark for mark in marks if mark <= most)
    return Scale(marks[0], marks[-1], marks)


def logarithmic(values: Iterable[float]) -> Scale:
    """A scale for positive values that span powers of ten."""
    known = list(values)
    low, high = min(known), max(known)
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    marks = tuple(
        10.0**power for power in range(first, last + 1) if low <= 10.0**power * (1 + 1e-9) <= high * (1 + 2e-9)
    )
    return Scale(low, high, marks, logarithmic=True)


def sweep(values: Iterable[float]) -> Scale:
    """Logarithmic if all values are positive and span a factor of 50, else linear."""
    known = list(values)
    if min(known) > 0 and max(known) / min(known) >= 50:
        return logarithmic(known)
    return linear(known, ticks=6)


def evenly_spaced(count: int) -> list[float]:
    """The positions of `count` equal steps on an axis, from end to end; a single one is in the middle."""
    return [0.5] if count == 1 else [number / (count - 1) for number in range(count)]


def pick_labels(numbers: Sequence[int], most: int = 6) -> list[int]:
    """The indices of the numbers to label: round ones, and the first and last unless too close to another."""
    count = len(numbers)
    if count <= most + 1:
        return list(range(count))
    step = math.ceil(_step(numbers[-1] - numbers[0], most))
    step = 5 if step == 3 else step  # 2.5 is a round step for figures, not for windows
    round_ones = [i for i, number in enumerate(numbers) if number % step == 0]
    if len(round_ones) < 3:
        round_ones = list(range(0, count, math.ceil(count / most)))
    apart = count / most * 0.6
    first = [0] if round_ones[0] >= apart else []
    last = [count - 1] if count - 1 - round_ones[-1] >= apart else []
    return [*first, *round_ones, *last]
