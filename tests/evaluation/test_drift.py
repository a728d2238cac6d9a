"""Drift of answers and projections, read from either bus."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import Producer

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main
from stream_cgzsl.evaluation.drift import drift
from stream_cgzsl.schemas import Evaluation, Message, Prediction


@pytest.fixture
def topics(bus: Bus) -> Iterator[Topics]:
    """A stream with two generations that answered and three that were evaluated."""
    topics = Topics(f"d{uuid.uuid4().hex[:10]}")
    bus.create(topics.specs(2))
    producer = Producer(bus, topics)
    producer.events("predictions", *answers(1, scores=np.linspace(0.1, 1.0, 10), unknown=0))
    producer.send("predictions", Message(b"?", b"?"))
    producer.events("predictions", *answers(2, scores=np.linspace(0.2, 2.0, 40), unknown=10))
    producer.events(
        "predictions",
        Prediction(request_id="none", status="no-model"),
        Prediction(request_id="early", status="no-model", generation=0),
        Prediction(request_id="bad", status="invalid", error="?"),
    )
    movement = {"a": 0.25, "[bold]b": 0.5, "c": 0.0, "d": 0.1}
    rounding = {"a": 1.0, "b": 3e-8}
    producer.events(
        "evaluations",
        Evaluation(generation=1, digest="0" * 64, samples=0),
        Evaluation(generation=2, digest="0" * 64, samples=0, movement=movement),
        Evaluation(generation=3, digest="0" * 64, samples=0, movement=rounding),
    )
    yield topics


def answers(generation: int, scores: Any, unknown: int) -> list[Prediction]:
    """The first `unknown` of them name no class. The margin is a tenth of the score; the last one has none."""
    return [
        Prediction(
            request_id=f"{generation}/{n}",
            status="unknown" if n < unknown else "ok",
            class_id=None if n < unknown else "a",
            score=score,
            margin=None if n == len(scores) - 1 else score / 10,
            generation=generation,
        )
        for n, score in enumerate(scores.tolist())
    ]


def about(*values: float) -> dict[str, Any]:
    return {
        name: pytest.approx(v, rel=0.011)
        for name, v in zip(("0.05", "0.25", "0.5", "0.75", "0.95"), values, strict=True)
    }


NOTHING = dict.fromkeys(("0.05", "0.25", "0.5", "0.75", "0.95"))
STILL = {"mean": None, "max": None, "most": {}}


def test_answers_and_projection_drift_by_generation(bus: Bus, topics: Topics) -> None:
    scores = np.linspace(0.2, 2.0, 40)
    expected = [
        {"generation": 0, "answers": 0, "unknown": None, "score": NOTHING, "margin": NOTHING, "movement": STILL},
        {
            "generation": 1,
            "answers": 10,
            "unknown": 0.0,
            "score": about(0.1, 0.3, 0.5, 0.8, 1.0),
            "margin": about(0.01, 0.03, 0.05, 0.07, 0.09),
            "movement": STILL,
        },
        {
            "generation": 2,
            "answers": 40,
            "unknown": 0.25,
            "score": about(*scores[[1, 9, 19, 29, 37]]),
            "margin": about(*scores[[1, 9, 19, 29, 37]] / 10),
            "movement": {"mean": 0.2125, "max": 0.5, "most": {"[bold]b": 0.5, "a": 0.25, "d": 0.1}},
        },
        {
            "generation": 3,
            "answers": 0,
            "unknown": None,
            "score": NOTHING,
            "margin": NOTHING,
            "movement": {"mean": pytest.approx(0.5), "max": 1.0, "most": {"a": 1.0}},
        },
    ]
    assert [one.document() for one in drift(bus, topics)] == expected


def test_the_command_prints_a_table_or_a_document(bus: Bus, topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    where = [f"--bus={bus.url}", f"--prefix={topics.prefix}"]
    assert main(["drift", *where]) == 0
    rows = {words[0]: words[1:] for line in capsys.readouterr().out.splitlines() if (words := line.split())}
    two = drift(bus, topics)[2]
    quantiles = [f"{value:.3g}" for value in (*two.scores.at((0.05, 0.5)), *two.margins.at((0.05, 0.5)))]
    assert rows["2"] == ["40", "25.0", "%", *quantiles, "0.212", "0.500", "[bold]b,", "a,", "d"]
    assert rows["3"] == ["0", "-", "-", "-", "-", "-", "0.500", "1.000", "a"]
    assert main(["drift", "--json", "--last", "2", *where]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["prefix"] == topics.prefix
    assert document["generations"] == [one.document() for one in drift(bus, topics)[-2:]]


def test_a_stream_that_did_nothing_yet(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/bus.db"
    assert main(["topics", "create", f"--bus={url}"]) == 0
    capsys.readouterr()
    assert main(["drift", f"--bus={url}"]) == 0
    assert "no generation of 'cgzsl' has answered or been evaluated yet" in capsys.readouterr().out
    assert main(["drift", "--json", f"--bus={url}"]) == 0
    assert json.loads(capsys.readouterr().out)["generations"] == []
