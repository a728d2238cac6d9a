"""features and holdout: labelled feature vectors, for training and for testing."""

from __future__ import annotations

from typing import ClassVar

from stream_cgzsl.schemas.event import VectorEvent
from stream_cgzsl.schemas.fields import Name


class Feature(VectorEvent):
    """One labelled example of a described class."""

    TYPE: ClassVar[str] = "cgzsl.feature"
    KEY: ClassVar[str | None] = "class_id"

    class_id: Name


class Holdout(Feature):
    """One labelled example that is never trained on."""

    TYPE: ClassVar[str] = "cgzsl.holdout"
