"""What the live page learns from the bus: everything, from the bus alone, and never more than fits."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    Producer,
    learner,
    new_bus,
    questions_about,
    scorer,
    settings_for,
    sqlite_url,
    wait_for_answers,
    wait_for_window,
)
from listening import Parts, at_window, listening, watched

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.report.live import watching
from stream_cgzsl.report.live.board import PREDICTIONS, Board
from stream_cgzsl.report.live.tail import Tail
from stream_cgzsl.schemas import DeadLetter, Evaluation, LedgerRecord, Message, Prediction

pytestmark = pytest.mark.slow


@pytest.fixture
def topics() -> Topics:
    """A prefix of the test's own: the broker is shared."""
    return Topics(f"live-{uuid.uuid4().hex[:8]}")


def taught(bus: Bus, topics: Topics, after_first: Callable[[], object] = lambda: None) -> None:
    """Six classes described, four of them taught in two windows, one record spoilt, some samples answered."""
    settings = settings_for(bus, topics, **NO_DESCRIBE)
    producer = Producer(bus, topics)
    with learner(settings), scorer(settings):
        producer.describe(*CLASSES[:6])
        producer.teach(*CLASSES[:3])
        producer.boundary("first")
        wait_for_window(bus, 1, topics)
        after_first()
        producer.teach(CLASSES[3])
        producer.send("features", Message(b"nobody", b"{}", ()))
        producer.boundary("second")
        wait_for_window(bus, 2, topics)
        producer.ask(questions_about(CLASSES[0], count=2))
        wait_for_answers(bus, questions_about(CLASSES[0], count=2), topics)


def complete(parts: Parts) -> bool:
    """Everything that `taught` made happen."""
    return at_window(2)(parts) and len(parts.get("predictions", ())) == 2 and len(parts.get("letters", ())) == 1


def test_the_page_shows_what_happens_on_the_bus(bus: Bus, topics: Topics) -> None:
    bus.create(topics.specs(2))
    with watched(bus.url, topics) as url, listening(url) as listener:
        listener.until(lambda parts: parts.get("status", {}).get("state") == "following")
        taught(
            bus, topics, lambda: listener.until(lambda parts: at_window(1)(parts) and bool(parts["classes"]["shown"]))
        )
        parts = listener.until(complete)
    assert parts["stream"]["prefix"] == topics.prefix
    second, first, genesis = parts["windows"]
    assert [(w["number"], w["kind"], w["reason"]) for w in (genesis, first, second)] == [
        (0, "genesis", "genesis"),
        (1, "train", "first"),
        (2, "train", "second"),
    ]
    counted = ("described", "features", "seen", "unseen", "dead")
    assert [first[name] for name in counted] == [6, 30, 3, 3, 0]
    assert [second[name] for name in counted] == [0, 10, 4, 2, 1]
    assert parts["classes"]["shown"] == [[class_id, number < 4] for number, class_id in enumerate(CLASSES[:6])]
    assert parts["classes"]["changes"] == [{"window": 2, "class_id": CLASSES[3], "what": "learned"}]
    assert [letter["reason"] for letter in parts["letters"]] == ["invalid-field"]
    assert {p["request_id"] for p in parts["predictions"]} == set(questions_about(CLASSES[0], count=2))


def test_a_page_that_starts_late_shows_the_same(bus: Bus, topics: Topics) -> None:
    bus.create(topics.specs(2))
    with watched(bus.url, topics) as url, listening(url) as listener:
        taught(bus, topics)
        early = listener.until(
            lambda parts: at_window(2)(parts) and len(parts["predictions"]) == 2 and parts["letters"]
        )
    with watched(bus.url, topics) as url, listening(url) as listener:
        late = listener.until(complete)
    assert late["classes"]["changes"] == []  # nothing has changed since it started
    for parts in (early, late):
        parts["classes"]["changes"] = []
        parts["predictions"].sort(key=lambda p: p["request_id"])
        parts["lag"] = parts["status"] = None
    assert late == early


def test_what_waits_is_counted(bus: Bus, topics: Topics) -> None:
    bus.create(topics.specs(2))
    taught(bus, topics)
    producer = Producer(bus, topics)
    producer.describe(CLASSES[6])
    producer.teach(CLASSES[6], rows=7)
    producer.ask(questions_about(CLASSES[1], count=3, tag="more"))
    with watched(bus.url, topics) as url, listening(url) as listener:
        wanted = {"attributes": 1, "features": 7, "samples": 3, "evaluations": None}
        listener.until(lambda parts: parts.get("lag") == wanted)


def test_many_browsers_are_served_by_one_reader(bus: Bus, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    bus.create(topics.specs())
    connections = []

    def counted(url: str) -> Bus:
        connections.append(url)
        return connect(url)

    monkeypatch.setattr(watching, "connect", counted)
    with watched(bus.url, topics) as url, listening(url) as one, listening(url) as two, listening(url) as three:
        for listener in (one, two, three):
            listener.until(lambda parts: "lag" in parts and "windows" in parts)
        assert one.parts == two.parts == three.parts
    assert connections == [bus.url]


def test_a_stream_that_is_not_there_yet_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_RETRY_SECONDS", 0.1)
    url, topics = sqlite_url(tmp_path), Topics("late")
    with watched(url, topics) as page, listening(page) as listener:
        parts = listener.until(lambda parts: parts.get("status", {}).get("state") == "away")
        assert "topic 'late.attributes'" in parts["status"]["problem"] and "create" in parts["status"]["problem"]
        with new_bus(url, topics=topics):
            listener.until(lambda parts: parts.get("status", {}).get("state") == "following")


def test_an_unavailable_broker_is_reported() -> None:
    with watched("kafka://localhost:1?patience_ms=1000", Topics("t")) as page, listening(page) as listener:
        parts = listener.until(lambda parts: parts.get("status", {}).get("state") == "away")
        assert "localhost:1" in parts["status"]["problem"]


def test_an_address_that_cannot_be_a_bus_ends_it() -> None:
    with pytest.raises(UsageError, match="unknown kind of bus"), watched("http://bus", Topics("t")):
        pass


def test_a_tail_begins_near_the_end_and_skips_a_flood(bus: Bus, topics: Topics) -> None:
    bus.create(topics.specs(1))
    producer = Producer(bus, topics)
    answers = [Prediction(request_id=str(number), status="no-model") for number in range(300)]
    producer.events("predictions", *answers[:100])
    tail = Tail(bus, {topics["predictions"]: 10})

    def numbers() -> list[int]:
        found = []
        for _ in range(20):
            found += [int((record.key or b"").decode()) for record in tail.poll(0.2)]
            if found and found[-1] in (99, 299):
                break
        return found

    assert numbers() == list(range(90, 100))
    producer.events("predictions", *answers[100:])
    tail.catch_up()
    assert numbers() == list(range(290, 300))
    tail.close()


def test_a_board_keeps_the_newest_only() -> None:
    board = Board()
    for number in range(1000):
        board.add(Prediction(request_id=str(number), status="no-model"), number)
        board.add(_letter(number), number)
        board.add(
            LedgerRecord(number=number, kind="train", reason="r", configuration_digest="0" * 64, code="1"), number
        )
        board.add(Evaluation(generation=number, digest="0" * 64, samples=1, seen=0.5, unseen=0.5, harmonic=0.5), number)
    parts = board.parts()
    assert [p["request_id"] for p in parts["predictions"]] == [str(n) for n in range(999, 999 - PREDICTIONS, -1)]
    assert [len(parts[name]) for name in ("predictions", "letters", "windows")] == [25, 25, 100]
    assert parts["accuracy"]["generation"] == 999


def test_an_evaluation_made_again_counts_once() -> None:
    board = Board()
    for generation, share in ((1, 0.1), (2, 0.2), (1, 0.3)):
        board.add(Evaluation(generation=generation, digest="0" * 64, samples=1, seen=share), 0)
    assert (board.evaluated, board.parts()["accuracy"]["seen"]) == (2, 0.2)
    assert board.parts()["accuracy"]["evaluated"].count("seen 30.0") == 1


def _letter(number: int) -> DeadLetter:
    return DeadLetter(data=b"", size=0, sha256="0" * 64, reason="r", detail="d", topic="t", partition=0, offset=number)
