"""The one error a decoder raises."""

from __future__ import annotations


class InvalidEvent(ValueError):
    """A record that is not a valid event of its topic.

    `reason` is a short stable slug (it labels metrics and dead letters); `found` says what was wrong with this
    record, `expected` what a valid one has, `advice` what its producer should change.
    """

    def __init__(self, reason: str, found: str, expected: str, advice: str) -> None:
        super().__init__(f"{reason}: {found}; expected {expected}. {advice}")
        self.reason = reason
        self.found = found
        self.expected = expected
        self.advice = advice

    def at(self, topic: str, partition: int, offset: int) -> str:
        """The whole story in one line, with the place of the record."""
        return f"{topic}/{partition} offset {offset}: {self}"
