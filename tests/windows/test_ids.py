"""Sets of ids in little memory: they behave as sets of bytes do, with every byte, zeros too."""

from __future__ import annotations

import tracemalloc

import numpy as np

from stream_cgzsl.windows.ids import KNOWN, NEW, Accepted, Ids

ZEROS = [bytes(16), bytes(15) + b"\1", b"\1" + bytes(15), b"\xff" * 16, b"\x7f" * 16]


def digests(count: int, seed: int = 0) -> list[bytes]:
    data = np.random.default_rng(seed).bytes(16 * count)
    return [data[start : start + 16] for start in range(0, len(data), 16)]


def test_ids_are_a_set_of_bytes() -> None:
    some, others = [*digests(100), *ZEROS], digests(100, 1)
    ids = Ids([*some, *some[:50]])
    assert ids == frozenset(some) and len(ids) == 105
    assert list(ids) == sorted(some)
    assert all(one in ids for one in some) and not any(one in ids for one in others)
    assert Ids.union([ids, Ids(others), Ids()]) == frozenset(some) | frozenset(others)
    assert (Ids(), Ids.union([])) == (frozenset(), frozenset())


def test_ids_survive_as_an_array() -> None:
    ids = Ids([*digests(100), *ZEROS])
    assert ids.array().tobytes() == b"".join(sorted(ids))
    assert Ids.of_array(ids.array()) == ids


def test_what_was_accepted_is_found_with_its_number() -> None:
    some, known = [*digests(3000), *ZEROS], digests(10, 1)
    accepted, expected = Accepted(Ids(known)), dict[bytes, int]()
    for start in range(0, len(some), 70):
        batch = some[max(0, start - 35) : start + 70]  # half of them again
        for digest, found in zip(batch, accepted.look_up(batch), strict=True):
            assert accepted.get(digest, found) == expected.get(digest, NEW)
            if digest not in expected:
                expected[digest] = len(expected)
                accepted.add(digest, expected[digest])
        accepted.end_batch()
    assert accepted.look_up([*some, *known]) == [*(expected[d] for d in some), *[KNOWN] * 10]
    accepted.renumber(some[3], 99)
    assert accepted.look_up(some[3:5]) == [99, expected[some[4]]]
    assert accepted.ids() == frozenset(some)


def test_an_id_takes_24_bytes() -> None:
    accepted = Accepted(Ids())
    tracemalloc.start()
    for seed in range(100):
        for digest in digests(1000, seed):
            accepted.add(digest, 1)
        accepted.end_batch()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(accepted.ids()) == 100_000
    assert used < 26 * 100_000
