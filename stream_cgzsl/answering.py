"""Answers to a batch of samples, all by one generation: decoded together, one matrix product, encoded by hand.

An answer's bytes are put together from parts made once per generation: building and serialising a model for each would
take longer than finding the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_cgzsl.bus.interface import Record
from stream_cgzsl.classifying import Classify
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import (
    KEPT_BYTES,
    BulkReader,
    Genesis,
    InvalidEvent,
    Message,
    Prediction,
    Read,
    Sample,
    decode,
    encode,
    foreign_headers,
)
from stream_cgzsl.windows.gather import check_feature, dead_letter

Array = npt.NDArray[Any]

_EMPTY = np.zeros(0, np.float32)
_spelled = "%.9g".__mod__
"""A score as text. Nine digits tell any two float32 apart; all seventeen of the same number take twice as long."""
_START = f'{{"type":"{Prediction.type_name()}","request_id":'


@dataclass
class Answered:
    """One message a record, in their order, and dead letters for those that are no samples; what was counted on the way."""

    predictions: list[Message]
    dead: list[Message] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=lambda: {"ok": 0, "unknown": 0, "no-model": 0, "invalid": 0})
    scores: Array = field(default_factory=lambda: _EMPTY)
    margins: Array = field(default_factory=lambda: _EMPTY)


class Answering:
    """Answers as one generation does; without one, or with one that cannot tell classes apart, as `no-model`.

    `top_k` candidates are told. An answer whose best score is below `reject_score` is `unknown`. Making one may take a
    while for many classes; it is used by one thread.
    """

    def __init__(
        self,
        generation: Generation | None,
        genesis: Genesis | None,
        classify: Classify | None,
        top_k: int = 1,
        reject_score: float | None = None,
    ) -> None:
        self.generation = generation
        self._genesis = genesis
        self._classify = classify
        self._top_k = top_k
        self._reject = -np.inf if reject_score is None else reject_score
        self._bulk = _bulk_reader(genesis)
        self._able = generation is not None and generation.servable and bool(generation.class_ids)
        self._names: list[str] = []
        self._candidates: list[str] = []
        self._end = "}"
        if generation is not None:
            self._names = [quoted(class_id) for class_id in generation.class_ids]
            flags = ("false", "true")
            self._candidates = [
                f'{{"class_id":{name},"seen":{flags[seen]},"score":'
                for name, seen in zip(self._names, generation.seen.astype(int).tolist(), strict=True)
            ]
            self._end = f',"generation":{generation.number}}}'

    def answer(self, records: Sequence[Record]) -> Answered:
        """Every record gets its answer: also one that is no sample, or too long, or of the wrong length."""
        answered = Answered([])
        read = None if self._bulk is None else self._bulk.read(records)
        if read is None:
            return self._answer_each(records, None, answered)
        ids = [event.key for event in read.events if event is not None and not event.more]
        if len(ids) < len(records):
            return self._answer_each(records, read, answered)
        values = self._values(ids, read.rows, answered)  # no headers to copy: as a rule
        answered.predictions = [Message(record.key, value) for record, value in zip(records, values, strict=True)]
        return answered

    def _answer_each(self, records: Sequence[Record], read: Read | None, answered: Answered) -> Answered:
        """Samples that were read together, those that must be decoded one by one, and what is none."""
        refused: dict[int, Message] = {}
        ids: list[str] = []
        vectors: list[Array] = []
        for place, record in enumerate(records):
            plain = None if read is None else read.events[place]
            try:
                if read is not None and plain is not None and not overloaded(record):
                    ids.append(plain.key)
                    vectors.append(read.rows[plain.row])
                else:
                    sample = self._decoded(record)
                    ids.append(sample.request_id)
                    vectors.append(sample.vector)
            except InvalidEvent as error:
                refused[place] = _refusal(record, error)
                answered.dead.append(dead_letter(record, error))
        answered.statuses["invalid"] = len(refused)
        together = read is not None and len(ids) == len(records) == len(read.rows)
        values = iter(self._values(ids, read.rows if read is not None and together else vectors, answered))
        names = iter(ids)
        for place, record in enumerate(records):
            if place in refused:
                answered.predictions.append(refused[place])
            else:
                copied = foreign_headers(record.headers)
                answered.predictions.append(Message(next(names).encode(), next(values), copied))
        return answered

    def _decoded(self, record: Record) -> Sample:
        event = decode("samples", record.key, record.value, record.headers)
        assert isinstance(event, Sample)
        if self._genesis is not None:
            check_feature(event, self._genesis)
        if overloaded(record):
            raise InvalidEvent(
                "too-large",
                "the headers are too long to be copied to the prediction",
                f"at most {KEPT_BYTES:,} bytes",
                "Send less in headers.",
            )
        return event

    def _values(self, ids: list[str], vectors: Array | list[Array], answered: Answered) -> list[bytes]:
        """The value of each prediction."""
        if not ids:
            return []
        if not self._able or self._classify is None:
            answered.statuses["no-model"] += len(ids)
            return [f'{_START}{quoted(id)},"status":"no-model"{self._end}'.encode() for id in ids]
        ranking = self._classify(np.asarray(vectors, np.float32), max(2, self._top_k))
        answered.scores = ranking.scores[:, 0]
        if ranking.scores.shape[1] > 1:
            answered.margins = ranking.scores[:, 0] - ranking.scores[:, 1]
        values: list[bytes] = []
        known = 0
        told = ranking.indices[:, : self._top_k].tolist()
        for id, indices, scores in zip(ids, told, ranking.scores.tolist(), strict=True):
            texts = list(map(_spelled, scores))
            named = '"unknown"'
            if scores[0] >= self._reject:
                named = f'"ok","class_id":{self._names[indices[0]]}'
                known += 1
            margin = f',"margin":{_spelled(scores[0] - scores[1])}' if len(scores) > 1 else ""
            top = "},".join([self._candidates[i] + text for i, text in zip(indices, texts, strict=False)])
            values.append(
                f'{_START}{quoted(id)},"status":{named},"score":{texts[0]}{margin},"top":[{top}}}]{self._end}'.encode()
            )
        answered.statuses["ok"] += known
        answered.statuses["unknown"] += len(ids) - known
        return values


def _bulk_reader(genesis: Genesis | None) -> BulkReader | None:
    """Without a genesis nobody knows how long samples should be."""
    return None if genesis is None else BulkReader("samples", genesis.features, None if genesis.signed else 0.0)


def overloaded(record: Record) -> bool:
    """Whether a prediction with the sample's headers could be too large to be written."""
    if len(record.headers) <= 8 and sum(len(value) for _, value in record.headers) < 1000:
        return False
    return sum(len(name) + len(value) for name, value in foreign_headers(record.headers)) > KEPT_BYTES


def _refusal(record: Record, error: InvalidEvent) -> Message:
    """The answer to what is no sample: why. Its headers are copied too, unless there are too many."""
    text = error.at(record.topic, record.partition, record.offset)
    message = encode(Prediction(request_id=_request_id(record), status="invalid", error=text))
    copied = () if overloaded(record) else foreign_headers(record.headers)
    return message._replace(headers=message.headers + copied)


def _request_id(record: Record) -> str:
    """The sample's own id where its key is readable, else its place."""
    try:
        text = (record.key or b"").decode()
    except UnicodeDecodeError:
        text = ""
    return text if 0 < len(text) <= 256 and text.isprintable() else f"{record.topic}/{record.partition}@{record.offset}"
