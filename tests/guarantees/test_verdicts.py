"""Replay: every verdict, the exit codes, and learning the same windows with other settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from altering import altered, edited
from expiry import expire
from guarded import TASKS, Stream

from stream_cgzsl.bus import Record
from stream_cgzsl.schemas import Projection, decode
from stream_cgzsl.schemas.roles import ROLES
from stream_cgzsl.serving.generation_io import load_generation

WINDOWS = len(TASKS)


def replayed(stream: Stream, *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and the verdict on each window."""
    code, output = stream.run("replay", *arguments)
    lines = [line.partition("train")[2].strip() for line in output.splitlines() if line.startswith("window")]
    return code, lines or [output.strip()]


def short(verdicts: list[str]) -> list[str]:
    return [verdict.partition(":")[0] for verdict in verdicts]


def test_an_unchanged_stream_is_identical(learned: Stream) -> None:
    digests = [(record.generation or "")[:12] for record in learned.ledger()[1:]]
    assert replayed(learned, "--verify") == (0, [f"identical: {digest}" for digest in digests])


def test_a_result_that_does_not_follow_from_its_inputs_is_different(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        return edited(role, record, generation="0" * 64) if role == "windows" and record.key == b"2" else record

    code, verdicts = replayed(altered(finished, tmp_path / "copy.db", change))
    assert (code, short(verdicts)) == (10, ["identical", "different", "identical"])
    assert verdicts[1].endswith("the ledger has 000000000000; same environment")


def test_changed_inputs_are_found(finished: Stream, tmp_path: Path) -> None:
    """A generation depends on all windows before it, and so does the verdict."""
    start = finished.ledger()[2].ranges["features"]
    place = next((partition, span.start) for partition, span in start.items() if span.accepted > 5)

    def change(role: str, record: Record) -> Record:
        if role != "features" or (record.partition, record.offset) != place:
            return record
        vector: Any = decode(role, record.key, record.value, record.headers)
        return edited(role, record, vector=vector.vector * np.float32(1.5))

    code, verdicts = replayed(altered(finished, tmp_path / "copy.db", change))
    assert (code, short(verdicts)) == (11, ["identical", "inputs differ", "inputs differ"])
    assert verdicts[2].endswith("it follows from window 2")


@pytest.mark.parametrize(
    ("turned", "code", "verdict"), [(1e-5, 0, "equivalent"), (0.3, 10, "different")], ids=["a little", "a lot"]
)
def test_another_environment_may_differ_a_little(
    finished: Stream, tmp_path: Path, turned: float, code: int, verdict: str
) -> None:
    """The ledger says that generation 3 was made with another torch, and its projections differ."""
    last = finished.ledger()[-1]
    generation = load_generation(finished.bus, finished.topics, last)
    pushed = {
        c: v + np.float32(turned) * v[::-1] for c, v in zip(generation.class_ids, generation.vectors, strict=True)
    }

    def change(role: str, record: Record) -> Record:
        if role == "windows" and record.key == b"3":
            object.__setattr__(generation, "vectors", np.stack([pushed[c] for c in generation.class_ids]))
            generation.__dict__.pop("digest", None)
            elsewhere = {**last.environment, "torch": "0.1"}
            return edited(role, record, generation=generation.digest, environment=elsewhere)
        event = decode(role, record.key, record.value, record.headers) if role == "projections" else None
        if isinstance(event, Projection) and event.generation == 3:
            return edited(role, record, vector=pushed[event.class_id])
        return record

    found, verdicts = replayed(altered(finished, tmp_path / "copy.db", change))
    assert (found, short(verdicts)) == (code, ["identical", "identical", verdict])
    assert "turned by at most" in verdicts[2] and "torch 0.1 -> " in verdicts[2]


def test_the_same_bytes_in_another_environment_are_identical(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        return edited(role, record, environment={"torch": "0.1"}) if role == "windows" else record

    code, verdicts = replayed(altered(finished, tmp_path / "copy.db", change))
    assert (code, short(verdicts)) == (0, ["identical"] * 3)


def test_windows_whose_records_expired_are_not_verifiable_and_the_others_are(stream: Stream) -> None:
    stream.send_tasks()
    stream.learn_until(WINDOWS)
    partition, span = next((p, s) for p, s in stream.ledger()[2].ranges["features"].items() if s.end - s.start > 3)
    expire(stream.bus, stream.topics["features"], partition, span.start + 3)
    code, verdicts = replayed(stream)
    assert code == 12
    first = stream.ledger()[1].ranges["features"][partition]
    assert verdicts[:2] == [
        f"not verifiable: features/{partition} [{first.start},{first.end}) expired",
        f"not verifiable: features/{partition} [{span.start},{span.start + 3}) expired",
    ]
    assert short(verdicts[2:]) == ["identical"]


def test_without_a_snapshot_nothing_after_an_expired_window_is_verifiable(embedded: Stream) -> None:
    embedded.send_tasks()
    embedded.learn_until(WINDOWS, snapshot_every=100)
    partition = next(p for p, span in embedded.ledger()[1].ranges["features"].items() if span.end)
    expire(embedded.bus, embedded.topics["features"], partition, 1)
    assert replayed(embedded) == (12, [f"not verifiable: features/{partition} [0,1) expired"] * WINDOWS)


# ---- which windows


def test_a_part_of_the_windows_can_be_replayed(learned: Stream) -> None:
    digests = [f"identical: {(record.generation or '')[:12]}" for record in learned.ledger()]
    assert replayed(learned, "--until", "2") == (0, digests[1:3])
    assert replayed(learned, "--from", "3") == (0, digests[3:])
    assert replayed(learned, "--from", "2", "--until", "2") == (0, digests[2:3])


@pytest.mark.parametrize(
    "arguments", [("--from", "4"), ("--from", "0"), ("--until", "9"), ("--from", "3", "--until", "2")]
)
def test_windows_that_do_not_exist_are_a_usage_error(finished: Stream, arguments: tuple[str, ...]) -> None:
    code, (said,) = replayed(finished, *arguments)
    assert code == 2 and "the ledger has windows 1 to 3" in said


# ---- what if


def test_a_replay_with_other_settings_changes_nothing_on_the_bus(finished: Stream) -> None:
    before = finished.results()
    topics = [finished.topics[role] for role in ROLES]
    ends = {topic: finished.bus.end_offsets(topic) for topic in topics}
    code, output = finished.run("replay", "--with", "learner=closed-form", "--until", "2")
    lines = output.splitlines()
    assert (code, len(lines)) == (0, 2)
    assert all((result[4] or "")[:12] not in line for result, line in zip(before, lines, strict=False))
    assert {topic: finished.bus.end_offsets(topic) for topic in topics} == ends


def test_a_replay_with_other_settings_can_be_published(learned: Stream) -> None:
    prefix = f"{learned.topics.prefix}-else"
    assert learned.run("replay", "--with", "learner=closed-form", "--to", prefix)[0] == 0
    inputs = [f"{role}={learned.topics[role]}" for role in ("attributes", "features", "control", "holdout")]
    flags = [flag for given in inputs for flag in ("--topics", given)]
    other = Stream(learned.url, learned.directory, learned.bus, type(learned.topics)(prefix))
    code, output = other.run("check", *flags)
    assert (code, output.splitlines()[-1].startswith("3 windows")) == (0, True)
    code, output = other.run("replay", "--verify", *flags)
    assert (code, output.splitlines()[-1]) == (0, "3 identical")
    assert learned.run("replay", "--with", "learner=closed-form", "--to", prefix)[0] == 2  # there is a ledger now


@pytest.mark.parametrize(
    "arguments",
    [("--verify", "--with", "learner=ridge"), ("--to", "elsewhere"), ("--with", "learner=ridge", "--from", "2")],
)
def test_flags_that_contradict_each_other_are_a_usage_error(finished: Stream, arguments: tuple[str, ...]) -> None:
    assert finished.run("replay", *arguments)[0] == 2
