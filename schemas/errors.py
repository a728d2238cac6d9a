"""The error a decoder raises, and every reason it can have."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "unreadable": "No client can read the record: it is damaged, or its batch is too large when decompressed.",
    "too-large": "The value is larger than any decoder reads.",
    "empty-value": "The value is empty on a topic where that means nothing.",
    "not-utf8": "The key or one of our headers is not UTF-8 text.",
    "repeated-header": "One of our headers is there twice.",
    "unknown-version": "The CloudEvents version, or the version of the event's type, is not supported.",
    "unknown-type": "The event's type does not belong to this topic.",
    "type-mismatch": "The header ce_type and the object's type differ.",
    "not-json": "The value is not a JSON object, and no header says that it is binary.",
    "wrong-dtype": "The vector's number format is not supported.",
    "wrong-length": "The value's length does not fit its number format or its ce_dim.",
    "not-finite": "A number is NaN or infinite.",
    "invalid-field": "A field is missing, unknown or invalid.",
    "missing-key": "The record has no key.",
    "key-mismatch": "The record's key and the same field of the event differ.",
}
"""Why a decoder refuses a record: the slug in metrics and dead letters, and its meaning."""

STREAM_REASONS: dict[str, str] = {
    "undecodable": "The decoder that the operator named for this topic cannot read it.",
    "unknown-class": "A feature's class has not been described.",
    "wrong-dimension": "The vector does not have this stream's dimension.",
    "negative-feature": "A number is negative, and this stream's features are not signed.",
    "unknown-generation": "A rollback to a generation that does not exist.",
    "cut-beyond-end": "A boundary's cut is beyond the end of a topic, and was for a minute.",
}
"""Why a worker refuses a record that may be valid elsewhere: it does not fit the stream."""

_LONGEST = 200


class InvalidEvent(ValueError):
    """A record that is not a valid event of its topic.

    `reason` is a short stable slug (a decoder's are in `REASONS`); `found` says what was wrong with this record,
    `expected` what a valid one has, `advice` what its producer should change. All are short and printable, whatever
    the record contains.
    """

    def __init__(self, reason: str, found: str, expected: str, advice: str) -> None:
        self.reason = reason
        self.found = printable(found)
        self.expected = printable(expected)
        self.advice = advice
        super().__init__(f"{reason}: {self.found}; expected {self.expected}. {advice}")

    def __reduce__(self) -> tuple[type[InvalidEvent], tuple[str, str, str, str]]:
        """For copying and pickling: the default would call __init__ with the message alone."""
        return type(self), (self.reason, self.found, self.expected, self.advice)

    def at(self, topic: str, partition: int, offset: int) -> str:
        """The whole message in one line, with the place of the record."""
        return f"{topic}/{partition} offset {offset}: {self}"


def printable(text: str) -> str:
    """`text` in at most 200 printable characters: nothing that breaks a line, moves a cursor or cannot be encoded."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    if text.isprintable():
        return text
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def shown(value: object) -> str:
    """A value from a record, for a message: a text is quoted and shortened, anything else named by its kind."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:59] + "…")
    kinds = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
