"""A pipeline's own format on all four topics: learned, answered, evaluated; replayed only with the same decoder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    Array,
    Producer,
    description,
    learner,
    letters,
    new_bus,
    process,
    questions_about,
    rows_of,
    settings_for,
    wait_for_answers,
    wait_for_window,
)
from patience import until

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main
from stream_cgzsl.runtime.settings import Settings, variable
from stream_cgzsl.schemas import Message, decode
from stream_cgzsl.serving.generation_io import load_generation
from stream_cgzsl.windows import ledger

FORMAT = '''
from pathlib import Path


def read(key, value, headers):
    """`class;1 2 3`: a class, or a request, and its numbers."""
    if not Path(__file__).with_name("registry").exists():
        raise ConnectionError("the registry is not there")
    name, _, numbers = value.decode().partition(";")
    field = "request_id" if name.startswith("q/") else "class_id"
    return {field: name, "vector": [float(number) for number in numbers.split()]}


def newer(key, value, headers):
    return read(key, value, headers)
'''

SEEN, UNSEEN = CLASSES[:4], CLASSES[4]


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Bus, Topics, Settings]]:
    for name in Settings.model_fields:
        monkeypatch.delenv(variable(name), raising=False)
    (tmp_path / "my_format.py").write_text(FORMAT)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[2]}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_format", raising=False)
    topics = Topics("t")
    with new_bus(f"sqlite:///{tmp_path / 'bus.db'}", 2, topics) as bus:
        decoder = dict.fromkeys(("attributes", "features", "samples", "holdout"), "my_format:read")
        yield bus, topics, settings_for(bus, topics, decoder=decoder, **NO_DESCRIBE)


def message(name: str, vector: Array) -> Message:
    return Message(None, f"{name};{' '.join(map(str, vector.tolist()))}".encode())


def test_a_format_of_its_own_is_learned_answered_and_replayed(
    stream: tuple[Bus, Topics, Settings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bus, topics, settings = stream
    producer = Producer(bus, topics)
    producer.send("attributes", *(message(c, description(c).vector) for c in CLASSES[:5]))
    producer.send("features", Message(None, b"\xff"), partition=1)
    producer.send("features", *(message(c, row) for c in SEEN for row in rows_of(c, 10, purpose=1)), partition=0)
    producer.send("holdout", *(message(c, row) for c in SEEN for row in rows_of(c)), Message(b"k", b"\xff"))
    questions = questions_about(*SEEN, UNSEEN)
    producer.send("samples", *(message(name, row) for name, row in questions.items()), Message(b"broken", b"\xff"))
    producer.boundary()
    with ExitStack() as stack:
        workers = [
            stack.enter_context(process(command, settings, tmp_path / f"{command}.log"))
            for command in ("learn", "evaluate")
        ]

        def alive() -> None:
            logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
            assert all(worker.poll() is None for worker in workers), logs

        registry = tmp_path / "registry"

        def waits(command: str) -> bool:
            alive()
            return "the registry is not there; trying again in" in (tmp_path / f"{command}.log").read_text()

        until(lambda: waits("learn"), "a learner that waits")
        registry.touch()
        wait_for_window(bus, 1, topics, alive)
        until(lambda: bus.end_offsets(topics["evaluations"])[0] > 0, "an evaluation")
        registry.unlink()
        workers.append(stack.enter_context(process("score", settings, tmp_path / "score.log")))
        until(lambda: waits("score"), "a scorer that waits")
        registry.touch()
        answers = wait_for_answers(bus, [*questions, "broken"], topics, alive)
        until(lambda: len(letters(bus, topics)) == 3, "three dead letters")
    records = ledger.read_all(bus, topics)
    generation = load_generation(bus, topics, records[1])
    assert (records[1].seen, records[1].unseen) == (4, 1)
    best = generation.classify(np.stack(list(questions.values())), 1).indices[:, 0]
    assert [answers[name].class_id for name in questions] == [generation.class_ids[index] for index in best]
    assert answers["broken"].status == "invalid"
    found = sorted((letter.topic, letter.partition, letter.offset, letter.reason) for letter in letters(bus, topics))
    assert [(topic, reason) for topic, *_, reason in found] == [
        ("t.features", "undecodable"),
        ("t.holdout", "undecodable"),
        ("t.samples", "undecodable"),
    ]
    assert found[0][1:3] == (1, 0)
    (evaluation,) = ledger.read_topic(bus, topics["evaluations"])
    assert decode("evaluations", evaluation.key, evaluation.value, evaluation.headers).samples == 20  # type: ignore[attr-defined]

    # ---- the ledger knows the decoders of what was learned
    assert (records[0].configuration or {})["decoders"] == dict.fromkeys(("attributes", "features"), "my_format:read")
    replay = ["replay", "--bus", bus.url, "--prefix", "t"]
    assert main([*replay, "--decoder", "my_format:read"]) == 0
    assert "1 identical" in capsys.readouterr().out
    assert main(replay) == 2
    assert capsys.readouterr().err == (
        "stream-cgzsl: window 1 was read with --decoder attributes=my_format:read --decoder features=my_format:read "
        "for attributes and features, and is read again the same way: name these\n"
    )
    assert main([*replay, "--decoder", "features=my_format:other"]) == 2
    assert "'other' does not exist there" in capsys.readouterr().err


def test_a_changed_decoder_takes_effect_at_the_next_window(
    stream: tuple[Bus, Topics, Settings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bus, topics, settings = stream
    (tmp_path / "registry").touch()
    producer = Producer(bus, topics)
    for number, name in enumerate(("read", "newer"), 1):
        now = settings.model_copy(update={"decoder": dict.fromkeys(("attributes", "features"), f"my_format:{name}")})
        with learner(now) as worker:
            producer.send("attributes", message(CLASSES[number], description(CLASSES[number]).vector))
            producer.send("features", *(message(CLASSES[number], row) for row in rows_of(CLASSES[number], 10)))
            producer.boundary()
            wait_for_window(bus, number, topics, worker.alive)
    records = ledger.read_all(bus, topics)
    assert [(record.configuration or {}).get("decoders", {}).get("features") for record in records] == [
        "my_format:read",
        None,
        "my_format:newer",
    ]
    replay = ["replay", "--bus", bus.url, "--prefix", "t", "--decoder"]
    assert main([*replay, "my_format:read", "--until", "1"]) == main([*replay, "my_format:newer", "--from", "2"]) == 0
    assert capsys.readouterr().out.count("1 identical") == 2
    assert main([*replay, "my_format:newer"]) == 2
    assert "window 1 was read with --decoder attributes=my_format:read" in capsys.readouterr().err
