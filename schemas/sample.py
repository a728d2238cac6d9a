"""samples and predictions: vectors to classify, and the answers."""

from __future__ import annotations

from typing import ClassVar, Literal

from stream_cgzsl.schemas.event import Event, Ours, VectorEvent
from stream_cgzsl.schemas.fields import Count, Flag, Name, Number, Text

Status = Literal["ok", "unknown", "no-model", "invalid"]


class Sample(VectorEvent):
    """A feature vector to classify. Headers that are not ours are copied to the prediction."""

    TYPE: ClassVar[str] = "cgzsl.sample"
    KEY: ClassVar[str | None] = "request_id"

    request_id: Name


class Candidate(Ours):
    class_id: Name
    score: Number
    seen: Flag


class Prediction(Event, Ours):
    """The answer of one generation to one sample.

    `ok`: `class_id` and `score` are the first of `top`, `margin` is its lead over the second. `unknown`: the best score
    is below the operator's threshold; the same fields, but no `class_id`. `no-model`: there is no servable generation
    yet. `invalid`: the sample could not be used; `error` says why, and it is in dead-letters too.
    Scores have nine digits, enough to distinguish any two float32.
    """

    TYPE: ClassVar[str] = "cgzsl.prediction"
    KEY: ClassVar[str | None] = "request_id"

    request_id: Name
    status: Status
    class_id: Name | None = None
    score: Number | None = None
    margin: Number | None = None
    top: tuple[Candidate, ...] = ()
    generation: Count | None = None
    error: Text | None = None
