"""A compacted file is the same stream: what is left of it is checked, replayed and continued as before."""

from __future__ import annotations

from pathlib import Path

from altering import altered
from guarded import Stream

from stream_cgzsl.cli import main
from stream_cgzsl.history.replay import Verdict
from stream_cgzsl.schemas import LedgerRecord


def test_a_compacted_stream_is_sound_and_goes_on(finished: Stream, tmp_path: Path) -> None:
    stream = altered(finished, tmp_path / "copy.db", lambda _, record: record)
    ledger: list[LedgerRecord] = stream.ledger()
    assert main(["compact", str(tmp_path / "copy.db")]) == 0
    found = stream.check()
    assert (found.problems, found.windows, found.generations) == ([], 3, 1)
    assert found.replaced == 2, "generations that are gone are counted, not hidden"
    assert stream.ledger() == ledger
    assert stream.verdicts()[-1] is Verdict.IDENTICAL
    stream.producer.boundary()
    stream.learn_until(4)
    assert stream.check().problems == []
