"""What `check` finds: records that the ledger does not account for, and ledger records without theirs."""

from __future__ import annotations

from pathlib import Path

from altering import altered, edited
from guarded import Stream

from stream_cgzsl.bus import Record
from stream_cgzsl.schemas import LedgerRecord, Projection, decode


def ranges(record: Record, window: bytes, **changes: int) -> Record:
    """The ledger record of a window, with other numbers for a partition of features that has some."""
    if record.key != window:
        return record
    event = decode("windows", record.key, record.value, record.headers)
    assert isinstance(event, LedgerRecord)
    spans = event.ranges["features"]
    partition = next(p for p, span in spans.items() if span.accepted > 1)
    span = spans[partition]
    changed = span.model_copy(update={name: getattr(span, name) + by for name, by in changes.items()})
    return edited("windows", record, ranges={**event.ranges, "features": {**spans, partition: changed}})


def problems(finished: Stream, tmp_path: Path, change: object) -> list[str]:
    copy = altered(finished, tmp_path / "copy.db", change)  # type: ignore[arg-type]
    code, _ = copy.run("check")
    found = copy.check().problems
    assert code == (8 if found else 0)
    return [text.replace(finished.topics.prefix, "T") for text in found]


def test_an_unchanged_stream_has_no_problems(finished: Stream, tmp_path: Path) -> None:
    assert problems(finished, tmp_path, lambda _, record: record) == []
    found = finished.check()
    accounted = (
        found.windows,
        found.accepted,
        found.duplicate,
        found.dead,
        found.lost,
        found.waiting,
        found.generations,
    )
    assert accounted == (3, 4 + 24 + 12 + 39 + 3, 5, 1, 0, 0, 3)


def test_a_missing_record_is_found(finished: Stream, tmp_path: Path) -> None:
    gone = [0]

    def change(role: str, record: Record) -> Record | None:
        gone[0] += role == "features"
        return None if role == "features" and gone[0] == 2 else record

    (problem,) = problems(finished, tmp_path, change)
    assert problem.startswith("window 1, T.features/") and "records and counts" in problem


def test_a_record_in_no_window_is_found(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        return ranges(record, b"2", start=1, accepted=-1) if role == "windows" else record

    found = problems(finished, tmp_path, change)
    assert len(found) == 2
    assert "does not start where the one before ended" in found[0] and "is in no window" in found[1]


def test_a_record_in_two_windows_is_found(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        return ranges(record, b"2", start=-1, accepted=1) if role == "windows" else record

    found = problems(finished, tmp_path, change)
    assert any("does not start where the one before ended" in problem for problem in found)


def test_a_wrong_count_is_found(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        return ranges(record, b"3", accepted=1) if role == "windows" else record

    (problem,) = problems(finished, tmp_path, change)
    assert problem.startswith("window 3, T.features/") and "records and counts" in problem


def test_a_missing_dead_letter_is_found(finished: Stream, tmp_path: Path) -> None:
    (problem,) = problems(finished, tmp_path, lambda role, record: None if role == "dead-letters" else record)
    assert problem.endswith("counts 1 dead records and has 0 dead letters")


def test_a_changed_projection_is_found(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        event = decode(role, record.key, record.value, record.headers) if role == "projections" else None
        if isinstance(event, Projection) and event.generation == 2:
            return edited(role, record, bias=event.bias + 1)
        return record

    (problem,) = problems(finished, tmp_path, change)
    assert "generation 2 has the digest" in problem


def test_an_incomplete_newest_generation_is_found(finished: Stream, tmp_path: Path) -> None:
    found = problems(finished, tmp_path, lambda role, record: None if role in ("projections", "state") else record)
    assert found[0] == "the newest generation, 3, is incomplete"
    assert found[1].startswith("the newest snapshot, of window 3, is incomplete")


def test_an_unknown_configuration_is_found(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        if role == "windows" and record.key == b"2":
            return edited(role, record, configuration_digest="0" * 64)
        return record

    assert problems(finished, tmp_path, change) == [
        "window 2 was learned with a configuration the ledger does not hold"
    ]


def test_a_window_that_was_published_twice_is_found(finished: Stream, tmp_path: Path) -> None:
    def change(role: str, record: Record) -> Record:
        return edited(role, record, number=2) if role == "windows" and record.key == b"3" else record

    code, said = altered(finished, tmp_path / "copy.db", change).run("check")
    assert code == 8 and "has record 2 where record 3 should be" in said
