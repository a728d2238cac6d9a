"""Neither partitions, polls nor the bus matter: the same events give the same windows, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from guarded import Told, new_stream
from launcher import RandomPolls


@pytest.mark.parametrize(("partitions", "seed"), [(1, 1), (4, 2)])
def test_the_same_events_give_the_same_digests(
    bus_url: str, tmp_path: Path, undisturbed: list[Told], partitions: int, seed: int
) -> None:
    with new_stream(bus_url, tmp_path, partitions) as stream:
        stream.tell()
        stream.learn_until(3, RandomPolls(seed))
        assert stream.told() == undisturbed
