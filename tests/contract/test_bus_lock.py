"""A lock has one holder, and can be acquired when that holder closes it."""

from __future__ import annotations

from patience import until

from stream_cgzsl.bus import Bus


def test_one_holder_at_a_time(bus: Bus, topic: str, name: str) -> None:
    with bus.lock(name, topic) as first, bus.lock(name, topic) as second:
        assert first.acquire(30.0)
        assert not second.acquire(2.0)
        assert (first.held(), second.held()) == (True, False)
        first.close()
        assert second.acquire(30.0)
        assert (first.held(), second.held()) == (False, True)


def test_acquiring_a_held_lock_again_returns_at_once(bus: Bus, topic: str, name: str) -> None:
    with bus.lock(name, topic) as lock:
        assert not lock.held()
        assert lock.acquire(30.0)
        assert lock.acquire(0.0)


def test_locks_with_different_names_are_independent(bus: Bus, topic: str, name: str) -> None:
    with bus.lock(f"{name}-1", topic) as first, bus.lock(f"{name}-2", topic) as second:
        assert first.acquire(30.0)
        assert second.acquire(30.0)
        until(lambda: first.held() and second.held())
