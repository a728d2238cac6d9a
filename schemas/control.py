"""control: what a person or a producer tells the learner."""

from __future__ import annotations

from typing import ClassVar

from stream_cgzsl.schemas.event import Event
from stream_cgzsl.schemas.fields import Count, Name, Partition

Cut = dict[Name, dict[Partition, Count]]
"""Per role (attributes, features, holdout), per partition: the first offset that is no longer in the window."""


class Boundary(Event):
    """ "A task ends here." Closes the window at `cut`, or where the topics end when the learner reads this."""

    TYPE: ClassVar[str] = "cgzsl.boundary"

    reason: Name = "boundary"
    cut: Cut | None = None


class Rollback(Event):
    """Make generation `to` the newest one again."""

    TYPE: ClassVar[str] = "cgzsl.rollback"

    to: Count
    reason: Name = "rollback"
