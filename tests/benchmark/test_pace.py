from __future__ import annotations

import pytest

from stream_cgzsl.benchmark.pace import Pace


class Clock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    def pace(self, rate: float | None) -> Pace:
        return Pace(rate, lambda: self.now, self.sleep)


def passed(pace: Pace, records: int) -> None:
    for _ in range(records):
        if pace.due():
            pace.wait()


@pytest.mark.parametrize("rate", [2.0, 50.0, 1000.0])
def test_records_take_as_long_as_the_rate_says(rate: float) -> None:
    clock = Clock()
    passed(clock.pace(rate), 401)
    assert clock.now - 100 == pytest.approx(400 / rate, abs=0.125)


def test_many_records_share_a_wait() -> None:
    clock = Clock()
    passed(clock.pace(1024.0), 1024)
    assert clock.sleeps == [0.125] * 7


def test_a_slow_sender_is_not_held_up() -> None:
    clock = Clock()
    pace = clock.pace(10.0)
    for _ in range(20):
        assert not pace.due()
        clock.now += 1.0


def test_without_a_rate_nothing_waits() -> None:
    clock = Clock()
    passed(clock.pace(None), 1000)
    assert clock.sleeps == []


def test_time_that_passed_unused_is_not_made_up_for() -> None:
    clock = Clock()
    pace = clock.pace(1.0)
    passed(pace, 1)
    clock.now += 3600
    passed(pace, 3)
    assert clock.sleeps == [1.0, 1.0]
