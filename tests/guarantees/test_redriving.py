"""Dead letters for operators: the limit, listing them, and sending their records again."""

from __future__ import annotations

from guarded import A, B, E, Stream
from helpers import examples, letters

from stream_cgzsl.schemas import Message


def test_a_window_with_too_many_dead_letters_is_not_committed(embedded: Stream) -> None:
    embedded.send_tasks(1)
    for number in range(3):
        embedded.producer.send("features", Message(A.encode(), bytes([number])))
    embedded.producer.boundary("bad")
    log = embedded.learn_to_its_end(9, dead_letter_limit=2)
    assert "3 records of window 2 are invalid and --dead-letter-limit is 2" in log
    assert (len(embedded.ledger()), letters(embedded.bus, embedded.topics)) == (2, [])
    embedded.learn_until(2, dead_letter_limit=3)
    assert len(letters(embedded.bus, embedded.topics)) == 3
    embedded.assert_sound(windows=2)


def test_features_of_an_unknown_class_can_be_redriven_once_it_is_described(stream: Stream) -> None:
    stream.send_tasks(1)
    stream.producer.events("features", *examples((E,), 6))
    stream.producer.send("features", Message(B.encode(), b"bad"))
    stream.producer.boundary("too early")
    stream.learn_until(2)
    code, shown = stream.run("dead-letters", "show")
    assert code == 0
    assert shown.splitlines()[-1] == "7 dead letters, 6 unknown-class, 1 not-json"
    stream.producer.describe(E)
    code, said = stream.run("dead-letters", "redrive", "--reason=unknown-class")
    assert (code, said.startswith("6 records sent again")) == (0, True)
    stream.producer.boundary("now")
    stream.learn_until(3)
    assert sum(span.accepted for span in stream.ledger()[3].ranges["features"].values()) == 6
    assert stream.run("dead-letters", "show")[1].splitlines()[-1] == "1 dead letters, 1 not-json"
    stream.assert_sound(windows=3)


def test_a_record_is_redriven_once(embedded: Stream) -> None:
    embedded.producer.events("features", *examples((E,), 6))
    embedded.producer.boundary()
    embedded.learn_until(1)
    said = [embedded.run("dead-letters", "redrive")[1] for _ in range(2)]
    assert [text.split()[0] for text in said] == ["6", "0"]
    embedded.producer.boundary()
    embedded.learn_until(2)  # still unknown: dead letters again, which may be redriven again
    assert embedded.run("dead-letters", "redrive")[1].split()[0] == "6"
