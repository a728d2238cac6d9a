"""The scorer on a real file: every sample is answered, also an invalid one, also without a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers import TOPICS, Producer, letters, new_bus, read, scorer, settings_for, sqlite_url, wait_for_answers
from patience import PATIENCE_SECONDS
from served_stream import AXES, CLASSES, ask, ask_until, commit, turned

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas import KEPT_BYTES, Message, Prediction, Sample, encode
from stream_cgzsl.serving.generation import Generation


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


@pytest.fixture
def served(bus: Bus) -> Bus:
    """A bus with generation 1."""
    commit(bus, 0)
    commit(bus, 1, turned(1))
    return bus


@pytest.fixture
def producer(bus: Bus) -> Producer:
    return Producer(bus)


# ---- answers


def test_a_sample_is_answered_with_the_best_classes(served: Bus) -> None:
    row = AXES[4] + 0.5 * AXES[3] + 0.25 * AXES[9]
    with scorer(settings_for(served, top_k=3)) as worker:
        answers = ask(served, worker, q=row)
    unit = row / np.linalg.norm(row)
    top = answers["q"].top
    assert [(c.class_id, c.seen) for c in top] == [(CLASSES[4], True), (CLASSES[3], False), (CLASSES[9], False)]
    assert [c.score for c in top] == pytest.approx([unit[4], unit[3], unit[9]])
    assert answers["q"] == Prediction(
        request_id="q",
        status="ok",
        class_id=CLASSES[4],
        score=top[0].score,
        margin=top[0].score - top[1].score,
        top=top,
        generation=1,
    )


def test_every_sample_of_every_partition_is_answered_once(served: Bus) -> None:
    names = [f"q{n}" for n in range(300)]
    with scorer(settings_for(served, batch=7)) as worker:
        answers = ask(served, worker, **{name: AXES[n % 16] for n, name in enumerate(names)})
    assert {name: p.class_id for name, p in answers.items()} == {n: CLASSES[i % 16] for i, n in enumerate(names)}
    assert len(read(served, TOPICS["predictions"])) == 300
    assert {p for p, end in served.end_offsets(TOPICS["samples"]).items() if end} == {0, 1}


def test_samples_in_any_encoding_get_the_same_answer(served: Bus, producer: Producer) -> None:
    half = Sample(request_id="half", vector=AXES[5].astype(np.float16))
    listed = Message(b"plain", b'{"vector": [0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0]}')
    producer.send("samples", encode(half), encode(half.model_copy(update={"request_id": "json"}), "json"), listed)
    with scorer(settings_for(served)) as worker:
        answers = wait_for_answers(served, ["half", "json", "plain"], alive=worker.alive)
    assert {p.class_id for p in answers.values()} == {CLASSES[5]}


def test_foreign_headers_are_copied(served: Bus, producer: Producer) -> None:
    sample = encode(Sample(request_id="q", vector=AXES[0]))
    own = (("traceparent", b"00-1"), ("reply-to", b"\xff"), ("traceparent", b"00-2"))
    producer.send("samples", sample._replace(headers=own + sample.headers))
    with scorer(settings_for(served)) as worker:
        wait_for_answers(served, ["q"], alive=worker.alive)
    (record,) = read(served, TOPICS["predictions"])
    assert record.headers == own
    assert record.key == b"q"


# ---- invalid samples


@pytest.mark.parametrize(
    ("message", "request_id", "reason"),
    [
        (encode(Sample(request_id="q", vector=np.ones(15, np.float32))), "q", "wrong-dimension"),
        (encode(Sample(request_id="q", vector=-AXES[0])), "q", "negative-feature"),
        (Message(b"q", b"\xff"), "q", "not-json"),
        (Message(b"q", b""), "q", "empty-value"),
        (Message(None, b"{}"), "t.samples/{partition}@{offset}", "missing-key"),
        (Message(b"\xff", b"{}"), "t.samples/{partition}@{offset}", "not-utf8"),
        (Message(b"a\nb", b"{}"), "t.samples/{partition}@{offset}", "invalid-field"),
        (Message(b"k" * 10**6, b"{}"), "t.samples/{partition}@{offset}", "invalid-field"),
    ],
    ids=["length", "sign", "bytes", "empty", "no key", "key not text", "key with a line break", "huge key"],
)
def test_an_invalid_sample_gets_an_answer_and_a_dead_letter(
    served: Bus, producer: Producer, message: Message, request_id: str, reason: str
) -> None:
    producer.ask({"before": AXES[1]})
    (receipt,) = producer.send("samples", message)
    producer.ask({"after": AXES[2]})
    name = request_id.format(partition=receipt.partition, offset=receipt.offset)
    with scorer(settings_for(served)) as worker:
        answers = wait_for_answers(served, ["before", name, "after"], alive=worker.alive)
    assert (answers["before"].class_id, answers["after"].class_id) == (CLASSES[1], CLASSES[2])
    place = f"t.samples/{receipt.partition} offset {receipt.offset}: "
    answered = answers[name]
    assert (answered.status, answered.class_id, answered.top) == ("invalid", None, ())
    assert (answered.error or "").startswith(place) and "; expected " in (answered.error or "")
    (letter,) = letters(served)
    assert (letter.topic, letter.partition, letter.offset) == ("t.samples", receipt.partition, receipt.offset)
    assert (letter.detail, letter.data) == (answered.error, message.value)
    assert letter.reason == reason


def test_headers_too_long_to_be_copied_are_refused(served: Bus, producer: Producer) -> None:
    sample = encode(Sample(request_id="q", vector=AXES[0]))
    producer.send("samples", sample._replace(headers=(*sample.headers, ("big", bytes(KEPT_BYTES)))))
    with scorer(settings_for(served)) as worker:
        answers = wait_for_answers(served, ["q"], alive=worker.alive)
    assert (answers["q"].status, [letter.reason for letter in letters(served)]) == ("invalid", ["too-large"])
    (record,) = read(served, TOPICS["predictions"])
    assert "big" not in dict(record.headers)


# ---- without a model


def test_without_a_generation_the_answer_is_no_model_until_there_is_one(bus: Bus) -> None:
    with scorer(settings_for(bus, max_wait=0.1)) as worker:
        early = ask(bus, worker, early=AXES[3])
        assert worker.worker.why_not_ready() == "no generation loaded yet"
        commit(bus, 0)
        commit(bus, 1, turned(1))
        later = ask_until(bus, worker, 1)
        assert worker.worker.why_not_ready() is None
    assert early == {"early": Prediction(request_id="early", status="no-model")}
    assert (later.status, later.class_id) == ("ok", CLASSES[3])
    assert worker.worker.why_not_ready() == "no partition of the samples assigned"


def test_a_sample_waits_for_the_first_generation(bus: Bus, producer: Producer) -> None:
    producer.ask({"q": AXES[3]})
    with scorer(settings_for(bus, max_wait=60)) as worker:
        commit(bus, 0)
        commit(bus, 1, turned(1))
        answers = wait_for_answers(bus, ["q"], alive=worker.alive)
    assert answers["q"].class_id == CLASSES[3]


def test_a_queue_waits_for_the_first_generation_only_once(bus: Bus, producer: Producer) -> None:
    """Sixty batches: waiting for each would take longer than this test waits."""
    names = [f"q{n}" for n in range(60)]
    producer.ask(dict.fromkeys(names, AXES[0]))
    with scorer(settings_for(bus, max_wait=PATIENCE_SECONDS / 30, batch=1)) as worker:
        answers = wait_for_answers(bus, names, alive=worker.alive)
    assert {p.status for p in answers.values()} == {"no-model"}


@pytest.mark.parametrize(
    "generation", [turned(1, servable=False), turned(1, classes=0)], ids=["not servable", "no classes"]
)
def test_a_generation_that_cannot_answer_says_so(bus: Bus, generation: Generation) -> None:
    commit(bus, 0)
    commit(bus, 1, generation)
    with scorer(settings_for(bus)) as worker:
        answers = ask(bus, worker, q=AXES[0])
    assert answers == {"q": Prediction(request_id="q", status="no-model", generation=1)}
