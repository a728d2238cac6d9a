"""samples and predictions: questions and answers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import FiniteFloat, NonNegativeInt

from stream_cgzsl.schemas.event import Event, Name, Part, VectorEvent

Status = Literal["ok", "no-model", "invalid"]


class Sample(VectorEvent):
    """A feature vector to classify. Headers that are not ours are copied to the prediction."""

    TYPE: ClassVar[str] = "cgzsl.sample"
    KEY: ClassVar[str | None] = "request_id"

    request_id: Name


class Candidate(Part):
    class_id: Name
    score: FiniteFloat
    seen: bool


class Prediction(Event):
    """The answer to one sample, by one generation.

    `ok`: `class_id` and `score` are the first of `top`. `no-model`: there is no servable generation yet.
    `invalid`: the sample could not be used, `error` says why; it is in dead-letters too.
    """

    TYPE: ClassVar[str] = "cgzsl.prediction"
    KEY: ClassVar[str | None] = "request_id"

    request_id: Name
    status: Status
    class_id: Name | None = None
    score: FiniteFloat | None = None
    top: tuple[Candidate, ...] = ()
    generation: NonNegativeInt | None = None
    error: str | None = None
