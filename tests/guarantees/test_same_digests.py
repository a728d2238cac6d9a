"""The same events give the same digests, whatever the bus, the partitions and the size of polls."""

from __future__ import annotations

from pathlib import Path

import pytest
from guarded import Result, new_stream
from launcher import RandomPolls


@pytest.mark.parametrize(("partitions", "seed"), [(1, 1), (4, 2)])
def test_the_same_events_give_the_same_digests(
    bus_url: str, tmp_path: Path, undisturbed: list[Result], partitions: int, seed: int
) -> None:
    with new_stream(bus_url, tmp_path, partitions) as stream:
        stream.send_tasks()
        stream.learn_until(3, RandomPolls(seed))
        assert stream.results() == undisturbed
