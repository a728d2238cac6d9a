"""The answers of one generation to a batch of samples."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import GENESIS
from served_stream import AXES, CLASSES, turned

from stream_cgzsl.bus import Record
from stream_cgzsl.schemas import Candidate, Genesis, Message, Prediction, Sample, decode, encode
from stream_cgzsl.serving.answers import AnsweredBatch, Answerer
from stream_cgzsl.serving.generation import Generation


def answerer(generation: Generation, top_k: int = 1, reject_score: float | None = None) -> Answerer:
    return Answerer(generation, GENESIS, generation.classify, top_k, reject_score)


def predictions(answered: AnsweredBatch) -> list[Prediction]:
    events = [decode("predictions", m.key, m.value, m.headers) for m in answered.predictions]
    return [event for event in events if isinstance(event, Prediction)]


def records(*messages: Message) -> list[Record]:
    return [Record("t.samples", 0, n, 0, m.key, m.value, m.headers) for n, m in enumerate(messages)]


def test_answers_are_in_the_order_of_their_samples() -> None:
    messages = [
        encode(Sample(request_id="a", vector=AXES[0])),
        Message(b"b", b"?"),
        encode(Sample(request_id="c", vector=AXES[2])),
    ]
    answered = answerer(turned(1)).answer(records(*messages))
    assert [(p.request_id, p.status, p.class_id) for p in predictions(answered)] == [
        ("a", "ok", CLASSES[0]),
        ("b", "invalid", None),
        ("c", "ok", CLASSES[2]),
    ]
    assert len(answered.dead) == 1


def test_an_answer_has_the_foreign_headers_of_its_sample_and_no_others() -> None:
    sample = encode(Sample(request_id="a", vector=AXES[0], id="seen once"))
    traced = sample._replace(headers=(*sample.headers, ("traceparent", b"00-1")))
    asked = [encode(Sample(request_id="a", vector=AXES[0])), sample, traced]
    together = answerer(turned(1)).answer(records(*asked))
    alone = [answerer(turned(1)).answer(records(message)).predictions[0] for message in asked]
    assert together.predictions == alone
    assert [message.headers for message in alone] == [(), (), (("traceparent", b"00-1"),)]


def test_an_answer_is_valid_json_for_any_class_id_and_request_id() -> None:
    """The JSON is assembled by hand: quotes and Unicode must survive, and scores come back as the same float32."""
    names = tuple(sorted(['"quoted"', "back\\slash", "Ünïcode 鳥", "plain"]))
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], np.float32)
    seen = np.array([True, False, True, False])
    generation = Generation(7, names, seen, vectors, np.zeros(4, np.float32), np.zeros(3, np.float32), "cosine")
    genesis = Genesis(attributes=8, features=3, signed=True)
    row = np.array([0.5, -0.25, 0.125], np.float32)
    message = encode(Sample(request_id='say "鳥"\\', vector=row))
    [prediction] = predictions(Answerer(generation, genesis, generation.classify, 3).answer(records(message)))
    ranking = generation.classify(row[None], 3)
    assert [np.float32(candidate.score) for candidate in prediction.top] == ranking.scores[0].tolist()
    assert prediction.margin == pytest.approx(ranking.scores[0, 0] - ranking.scores[0, 1], rel=1e-6)
    top = tuple(
        Candidate(class_id=names[i], score=candidate.score, seen=bool(seen[i]))
        for i, candidate in zip(ranking.indices[0], prediction.top, strict=True)
    )
    assert prediction == Prediction(
        request_id='say "鳥"\\',
        status="ok",
        class_id=top[0].class_id,
        score=top[0].score,
        margin=prediction.margin,
        top=top,
        generation=7,
    )


def test_an_answer_with_one_candidate_has_a_margin_unless_there_is_only_one_class() -> None:
    sample = encode(Sample(request_id="a", vector=AXES[0] + AXES[1] / 2))
    [two] = predictions(answerer(turned(1), top_k=1).answer(records(sample)))
    assert (len(two.top), two.margin) == (1, pytest.approx(0.5 / np.sqrt(1.25)))
    [one] = predictions(answerer(turned(1, classes=1), top_k=3).answer(records(sample)))
    assert (len(one.top), one.margin) == (1, None)


def test_a_best_score_below_the_threshold_is_unknown_and_still_lists_its_candidates() -> None:
    sure, unsure = AXES[0], AXES.sum(axis=0)  # scores 1 and 1/4
    answered = answerer(turned(1), top_k=2, reject_score=0.5).answer(
        records(encode(Sample(request_id="sure", vector=sure)), encode(Sample(request_id="unsure", vector=unsure)))
    )
    assert [(p.status, p.class_id, len(p.top)) for p in predictions(answered)] == [
        ("ok", CLASSES[0], 2),
        ("unknown", None, 2),
    ]
    assert answered.statuses == {"ok": 1, "unknown": 1, "no-model": 0, "invalid": 0}
    assert predictions(answered)[1].score == pytest.approx(0.25)


def test_a_batch_of_mixed_formats_is_answered_like_any_other() -> None:
    half = encode(Sample(request_id="half", vector=AXES[3].astype(np.float16)))
    text = encode(Sample(request_id="text", vector=AXES[3]), "json")._replace(key=None)
    whole = encode(Sample(request_id="whole", vector=AXES[3]))
    answered = answerer(turned(1)).answer(records(half, text, whole))
    assert [(m.key, p.class_id, p.score) for m, p in zip(answered.predictions, predictions(answered), strict=True)] == [
        (name, CLASSES[3], 1.0) for name in (b"half", b"text", b"whole")
    ]
