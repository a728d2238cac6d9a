"""control: commands to the learner, from a person or a producer."""

from __future__ import annotations

from typing import ClassVar

from stream_cgzsl.schemas.event import Event, Model
from stream_cgzsl.schemas.fields import Count, Name, Partition, Positive

Cut = dict[Name, dict[Partition, Count]]
"""Per role (attributes, features, holdout), per partition: the first offset that is not in the window."""


class FeedTask(Model):
    """Task number `task` of the feed `name`: the data set, its features, their digest, the plan and the order."""

    name: Name
    task: Positive


class Boundary(Event):
    """A task ends here. Closes the window at `cut`, or where the topics end when the learner reads this.

    `reason` is for people. `feed` is set by a benchmark that feeds a data set task by task, so that it can resume.
    """

    TYPE: ClassVar[str] = "cgzsl.boundary"

    reason: Name = "boundary"
    cut: Cut | None = None
    feed: FeedTask | None = None


class Rollback(Event):
    """Make generation `to` the newest one again."""

    TYPE: ClassVar[str] = "cgzsl.rollback"

    to: Count
    reason: Name = "rollback"
