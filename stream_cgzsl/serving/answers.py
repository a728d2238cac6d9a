"""Answers to a batch of samples, all by one generation: decoded together, one matrix product, encoded by hand.

The JSON of an answer is assembled from parts that are made once per generation: building and serialising a pydantic
model per answer would take longer than finding it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from json.encoder import encode_basestring_ascii as quoted
from typing import NamedTuple

import numpy as np

from stream_cgzsl.bus import Record
from stream_cgzsl.schemas import (
    KEPT_BYTES,
    Array,
    Batch,
    Decoder,
    Genesis,
    InvalidEvent,
    Message,
    Prediction,
    encode,
    foreign_headers,
)
from stream_cgzsl.serving.generation import Generation, Ranking
from stream_cgzsl.windows.dead_letters import dead_letter
from stream_cgzsl.windows.validation import feature_reader

Classify = Callable[[Array, int], Ranking]
"""(rows [rows, features], k) -> the k best classes of each row"""

_EMPTY = np.zeros(0, np.float32)
_SCORE = "%.9g"
"""Nine digits distinguish any two float32; printing all seventeen of a float64 takes twice as long."""
_START = f'{{"type":"{Prediction.type_name()}","request_id":'


@dataclass
class AnsweredBatch:
    """One prediction per record, in order; dead letters of the invalid ones; and what metrics need."""

    predictions: list[Message]
    dead: list[Message] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=lambda: {"ok": 0, "unknown": 0, "no-model": 0, "invalid": 0})
    scores: Array = field(default_factory=lambda: _EMPTY)
    margins: Array = field(default_factory=lambda: _EMPTY)


def classifier(generation: Generation, device: str = "cpu") -> Classify:
    """As `generation.classify`, on `device`. Everything slow is done here, not at the first answer."""
    if device == "cpu":
        generation.prepare()
        return generation.classify
    from stream_cgzsl.serving.cuda import CudaClassifier  # torch takes seconds to import

    return CudaClassifier(generation, device)


class _Texts(NamedTuple):
    name: str
    candidate: str  # of a class in `top`, up to its score


class _ClassTexts(dict[int, _Texts]):
    """What answers say of a class, by its index; made when it is first answered: a swap need not wait for all."""

    def __init__(self, generation: Generation | None) -> None:
        super().__init__()
        self._generation = generation

    def __missing__(self, index: int) -> _Texts:
        assert self._generation is not None
        name, seen = quoted(self._generation.class_ids[index]), "true" if self._generation.seen[index] else "false"
        found = self[index] = _Texts(name, f'{{"class_id":{name},"seen":{seen},"score":')
        return found


class Answerer:
    """Answers with one generation; without one, or with one that is not servable, every answer is `no-model`.

    An answer lists `top_k` candidates. One whose best score is below `reject_score` is `unknown`. Samples are read by
    `decoder`, if there is one. For one thread only.
    """

    def __init__(
        self,
        generation: Generation | None,
        genesis: Genesis | None,
        classify: Classify | None,
        top_k: int = 1,
        reject_score: float | None = None,
        decoder: Decoder | None = None,
    ) -> None:
        self.generation = generation
        self._classify = classify
        self._top_k = top_k
        self._reject = -np.inf if reject_score is None else reject_score
        self._reader = feature_reader("samples", genesis, decoder)
        self._able = generation is not None and generation.servable and bool(generation.class_ids)
        self._texts = _ClassTexts(generation)
        self._end = "}" if generation is None else f',"generation":{generation.number}}}'

    def answer(self, records: Sequence[Record]) -> AnsweredBatch:
        """Every record gets an answer, also one that is not a valid sample."""
        answered = AnsweredBatch([])
        batch = self._reader.read_all(records)
        ids = [event.key for event in batch.events if event is not None and not event.more]
        if batch.decoded or len(ids) < len(records):
            return self._answer_each(records, batch, answered)
        values = self._values(ids, batch.rows, answered)  # the usual case: no headers to copy
        answered.predictions = [Message(record.key, value) for record, value in zip(records, values, strict=True)]
        return answered

    def _answer_each(self, records: Sequence[Record], batch: Batch, answered: AnsweredBatch) -> AnsweredBatch:
        """Answers a batch in which some records have headers of their own, were decoded one by one, or are invalid."""
        refused = dict(batch.refused)
        ids: list[str] = []
        rows: list[int] = []
        for index, (record, event) in enumerate(zip(records, batch.events, strict=True)):
            if event is not None and overloaded(record):
                refused[index] = InvalidEvent(
                    "too-large",
                    "the headers are too long to be copied to the prediction",
                    f"at most {KEPT_BYTES:,} bytes",
                    "Send less in headers.",
                )
            elif event is not None:
                ids.append(event.key)
                rows.append(event.row)
        answered.statuses["invalid"] = len(refused)
        vectors = batch.rows if len(rows) == len(batch.rows) else batch.rows[rows]
        values = zip(ids, self._values(ids, vectors, answered), strict=True)
        for index, record in enumerate(records):
            error = refused.get(index)
            if error is None:
                id, value = next(values)
                answered.predictions.append(Message(id.encode(), value, foreign_headers(record.headers)))
            else:
                answered.predictions.append(_refusal(record, error))
                answered.dead.append(dead_letter(record, error))
        return answered

    def _values(self, ids: list[str], vectors: Array, answered: AnsweredBatch) -> list[bytes]:
        """The value of each prediction."""
        if not ids:
            return []
        if not self._able or self._classify is None:
            answered.statuses["no-model"] += len(ids)
            return [f'{_START}{quoted(id)},"status":"no-model"{self._end}'.encode() for id in ids]
        ranking = self._classify(vectors, max(2, self._top_k))
        answered.scores = ranking.scores[:, 0]
        if ranking.scores.shape[1] > 1:
            answered.margins = ranking.scores[:, 0] - ranking.scores[:, 1]
        values: list[bytes] = []
        known = 0
        texts_of = self._texts
        form = _form(ranking.scores.shape[1], self._top_k, self._end)
        candidates = ranking.indices[:, : self._top_k].tolist()
        for id, indices, scores in zip(ids, candidates, ranking.scores.tolist(), strict=True):
            best = scores[0]
            named = '"unknown"'
            if best >= self._reject:
                named = f'"ok","class_id":{texts_of[indices[0]].name}'
                known += 1
            top = chain.from_iterable(zip([texts_of[i].candidate for i in indices], scores, strict=False))
            margin = (best - scores[1],) if len(scores) > 1 else ()
            values.append((form % (quoted(id), named, best, *margin, *top)).encode())
        answered.statuses["ok"] += known
        answered.statuses["unknown"] += len(ids) - known
        return values


def _form(scores: int, listed: int, end: str) -> str:
    """What an answer with so many scores, and so many of them listed, is made of: filled in all at once."""
    top = "},".join([f"%s{_SCORE}"] * min(scores, listed))
    margin = f',"margin":{_SCORE}' if scores > 1 else ""
    return f'{_START}%s,"status":%s,"score":{_SCORE}{margin},"top":[{top}}}]{end}'


def overloaded(record: Record) -> bool:
    """Whether a prediction with the sample's headers could be too large to be written."""
    if len(record.headers) <= 8 and sum(len(value) for _, value in record.headers) < 1000:
        return False
    return sum(len(name) + len(value) for name, value in foreign_headers(record.headers)) > KEPT_BYTES


def _refusal(record: Record, error: InvalidEvent) -> Message:
    """The answer to an invalid sample: why it is. Its headers are copied too, unless there are too many."""
    text = error.at(record.topic, record.partition, record.offset)
    message = encode(Prediction(request_id=_request_id(record), status="invalid", error=text))
    copied = () if overloaded(record) else foreign_headers(record.headers)
    return message._replace(headers=message.headers + copied)


def _request_id(record: Record) -> str:
    """The sample's own id if its key is readable, else where it is on the bus."""
    try:
        text = (record.key or b"").decode()
    except UnicodeDecodeError:
        text = ""
    return text if 0 < len(text) <= 256 and text.isprintable() else f"{record.topic}/{record.partition}@{record.offset}"
