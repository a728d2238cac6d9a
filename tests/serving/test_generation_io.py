"""A generation on the bus: it is loaded back as it was published, and any change to it is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import TOPICS, new_bus, read, sqlite_url
from ledgers import genesis_record, replace_record, truncate, window_record, write

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import Message, Projection, Withdrawal, decode, encode
from stream_cgzsl.serving.encoder import Layer
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import commit_of, load_generation
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit
from stream_cgzsl.windows.ledger import Incomplete

NAMES = {"a": "ant", "b": "bee", "c": "cat"}


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def generation(number: int = 1, classes: str = "abc", features: int = 4) -> Generation:
    rng = np.random.default_rng(number)
    return Generation(
        number,
        tuple(classes),
        np.arange(len(classes)) % 2 == 0,
        rng.normal(size=(len(classes), features)).astype(np.float32),
        rng.normal(size=len(classes)).astype(np.float32),
        rng.normal(size=features).astype(np.float32),
        transform="sqrt",
        calibration={"offset": 0.1 + 0.2, "evidence": [1, 2.5]},
    )


def projection(**changes: Any) -> Message:
    """The projection of class b in generation 1, with changes."""
    made = generation()
    fields = {"class_id": "b", "vector": made.vectors[1], "bias": float(made.biases[1]), "seen": False, "generation": 1}
    return encode(Projection(**{**fields, **changes}))


def test_a_generation_is_loaded_back_as_it_was_published(bus: Bus) -> None:
    written = write(bus, commit_of(window_record(), generation()))
    loaded = load_generation(bus, TOPICS, written)
    assert loaded.digest == generation().digest == written.generation
    assert loaded.calibration == generation().calibration


def test_projections_contain_all_that_a_reader_of_the_topic_needs(bus: Bus) -> None:
    made = generation()
    write(bus, commit_of(window_record(), made, NAMES, ["y"]))
    events = [decode("projections", r.key, r.value, r.headers) for r in read(bus, TOPICS["projections"])]
    assert events == [
        Withdrawal(class_id="y"),
        *(
            Projection(
                class_id=c,
                vector=made.vectors[i],
                bias=float(made.biases[i]),
                seen=bool(made.seen[i]),
                generation=1,
                name=NAMES[c],
            )
            for i, c in enumerate("abc")
        ),
    ]


def test_numbers_of_examples_are_loaded_back(bus: Bus) -> None:
    made = replace(generation(), examples=np.array([3, 0, 2**40]))
    written = write(bus, commit_of(window_record(), made))
    loaded = load_generation(bus, TOPICS, written).examples
    assert (loaded is not None) and loaded.tolist() == [3, 0, 2**40]


def test_generations_whose_projections_do_not_all_have_a_number_of_examples_have_none(bus: Bus) -> None:
    """Projections from before it was recorded, or written by somebody else."""
    older = write(bus, commit_of(window_record(), generation()))
    assert load_generation(bus, TOPICS, older).examples is None
    mixed = write(bus, commit_of(window_record(2), replace(generation(), number=2, examples=np.array([3, 0, 1]))))
    replace_record(bus, "projections", 4, projection(generation=2))
    assert load_generation(bus, TOPICS, mixed).examples is None


@pytest.mark.parametrize("classes", ["", "a"], ids=["no class", "one class"])
def test_small_generations_are_loaded_back_too(bus: Bus, classes: str) -> None:
    written = write(bus, commit_of(window_record(), generation(classes=classes)))
    assert load_generation(bus, TOPICS, written).digest == generation(classes=classes).digest


def test_each_generation_can_be_loaded_while_it_exists(bus: Bus) -> None:
    written = [write(bus, commit_of(window_record(n), generation(n))) for n in (1, 2, 3)]
    assert [load_generation(bus, TOPICS, record).number for record in written] == [1, 2, 3]


def test_a_window_without_a_generation_has_none_to_load(bus: Bus) -> None:
    with pytest.raises(Incomplete, match=r"window 0 \(genesis\) published nothing"):
        load_generation(bus, TOPICS, write(bus, Commit(genesis_record())))


# ---- somebody else wrote to the projections


@pytest.mark.parametrize("change", [{"name": "another"}, {"examples": 7}], ids=["name", "examples"])
def test_a_change_that_no_answer_depends_on_does_not_matter(bus: Bus, change: dict[str, Any]) -> None:
    """Names and numbers of examples are for people: they are not in the digest."""
    written = write(bus, commit_of(window_record(), generation()))
    replace_record(bus, "projections", 1, projection(**change))
    assert load_generation(bus, TOPICS, written).digest == written.generation


@pytest.mark.parametrize(
    "change",
    [
        {"vector": np.ones(4, np.float32)},
        {"vector": np.ones(5, np.float32)},
        {"bias": 0.0},
        {"seen": True},
        {"class_id": "c"},
        {"class_id": "bb"},
    ],
    ids=["vector", "length", "bias", "seen", "a class twice", "another class"],
)
def test_a_changed_projection_is_noticed(bus: Bus, change: dict[str, Any]) -> None:
    written = write(bus, commit_of(window_record(), generation()))
    replace_record(bus, "projections", 1, projection(**change))
    with pytest.raises(BrokenLedger, match=r"generation 1 .*somebody else changed the projections"):
        load_generation(bus, TOPICS, written)


@pytest.mark.parametrize(
    "message",
    [None, projection(generation=2), encode(Withdrawal(class_id="b")), Message(b"b", b"garbage")],
    ids=["missing", "of a later generation", "withdrawn", "unreadable"],
)
def test_a_missing_projection_makes_the_generation_incomplete(bus: Bus, message: Message | None) -> None:
    written = write(bus, commit_of(window_record(), generation()))
    replace_record(bus, "projections", 1, message)
    with pytest.raises(Incomplete, match="2 of 3 projections of generation 1 are left"):
        load_generation(bus, TOPICS, written)


def test_a_recreated_topic_makes_the_generation_incomplete(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(ledger, "_SILENT_POLLS", 2)
    written = write(bus, commit_of(window_record(), generation()))
    truncate(bus, "projections", 1)
    with pytest.raises(Incomplete, match=r"t\.projections/0 ends at 1 and the ledger says 3"):
        load_generation(bus, TOPICS, written)


# ---- with an encoder


def encoded(number: int = 1, hidden: int = 300_000) -> Generation:
    """One whose encoder is longer than one record may be."""
    rng = np.random.default_rng(number)
    layers = (
        Layer(rng.normal(size=(hidden, 2)).astype(np.float32), np.zeros(hidden, np.float32), "relu"),
        Layer(rng.normal(size=(4, hidden)).astype(np.float32), rng.normal(size=4).astype(np.float32)),
    )
    return replace(generation(number), metric="linear", calibration={}, encoder=layers)


def test_a_generation_with_an_encoder_is_loaded_back_as_it_was_published(bus: Bus) -> None:
    made = encoded()
    written = write(bus, commit_of(window_record(), made))
    assert written.encoder is not None and written.encoder.count > 1
    loaded = load_generation(bus, TOPICS, written)
    assert loaded.digest == made.digest == written.generation
    rows = np.random.default_rng(5).random((3, 2)).astype(np.float32)
    np.testing.assert_array_equal(loaded.scores(rows), made.scores(rows))
    assert loaded.features == 2


def test_no_class_can_have_the_key_of_an_encoder(bus: Bus) -> None:
    write(bus, commit_of(window_record(), encoded(hidden=3)))
    key = read(bus, TOPICS["projections"])[0].key
    assert key is not None
    with pytest.raises(ValueError, match="class_id"):
        Withdrawal(class_id=key.decode())


def test_an_encoder_that_was_replaced_makes_the_generation_incomplete(bus: Bus) -> None:
    first = write(bus, commit_of(window_record(), encoded(hidden=3)))
    second = write(bus, commit_of(window_record(2), encoded(2, hidden=3)))
    replace_record(bus, "projections", 0, None)  # compaction: the second one has the same key
    with pytest.raises(Incomplete, match="0 of 1 parts of the encoder of generation 1 are left"):
        load_generation(bus, TOPICS, first)
    assert load_generation(bus, TOPICS, second).digest == encoded(2, hidden=3).digest


def test_a_changed_encoder_is_noticed(bus: Bus) -> None:
    written = write(bus, commit_of(window_record(), encoded(hidden=3)))
    item = read(bus, TOPICS["projections"])[0]
    assert item.value is not None
    replace_record(bus, "projections", 0, Message(item.key, item.value[:-4] + b"\0\0\0\0", item.headers))
    with pytest.raises(BrokenLedger, match="somebody else changed the projections"):
        load_generation(bus, TOPICS, written)
