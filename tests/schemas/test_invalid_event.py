"""The error itself: short, printable, and complete after pickling."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from stream_cgzsl.schemas import InvalidEvent
from stream_cgzsl.schemas.errors import REASONS, STREAM_REASONS, printable, shown


def test_the_whole_message_is_one_line() -> None:
    error = InvalidEvent("not-json", "the value is a list", "an object", "Send one object.")
    assert error.at("cgzsl.control", 0, 12) == (
        "cgzsl.control/0 offset 12: not-json: the value is a list; expected an object. Send one object."
    )


@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_it_can_be_copied_and_pickled(travel: Any) -> None:
    error = InvalidEvent("not-json", "a\nb", "an object", "Send one object.")
    there = travel(error)
    assert (type(there), str(there), vars(there)) == (InvalidEvent, str(error), vars(error))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("zebra 斑马", "zebra 斑马"),
        ("a\nb\x1b[2J\x00", "a\\nb\\x1b[2J\\x00"),
        ("right-to-left \u202e", "right-to-left \\u202e"),
        ("half \ud800", "half \\ud800"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("\x00" * 100, "\\x00" * 49 + "\\x0…"),
    ],
)
def test_texts_are_made_printable(text: str, printed: str) -> None:
    assert printable(text) == printed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("zebra", "'zebra'"),
        ("x" * 61, "'" + "x" * 59 + "…'"),
        ({"a": 1}, "an object"),
        ([1], "a list"),
        (True, "true or false"),
        (10**5000, "a number"),
        (0.5, "a number"),
        (None, "null"),
    ],
    ids=lambda item: type(item).__name__,
)
def test_values_are_named_briefly(value: object, words: str) -> None:
    assert shown(value) == words


def test_reasons_are_slugs_with_a_sentence() -> None:
    every = REASONS | STREAM_REASONS
    odd = [slug for slug, text in every.items() if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", slug) or text[-1] != "."]
    assert odd == []


def slugs_in(path: Path) -> set[str]:
    """The reasons written out in the `InvalidEvent(...)` calls of a source file."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InvalidEvent"
        if isinstance(node.args[0], ast.Constant)
    }


def test_every_reason_in_the_code_is_listed() -> None:
    root = Path(__file__).parents[2]
    sources = [path for folder in ("schemas", "stream_cgzsl", "workers") for path in (root / folder).rglob("*.py")]
    given = {slug for path in sources for slug in slugs_in(path)}
    assert given - set(REASONS) == set(STREAM_REASONS)
