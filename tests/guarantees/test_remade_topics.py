"""A topic that was deleted and made anew, or cut back, is refused: its offsets are not those of the ledger."""

from __future__ import annotations

from pathlib import Path

from expiry import delete_topic
from guarded import Stream

from stream_cgzsl.bus.sqlite.bus import SqliteBus
from stream_cgzsl.bus.sqlite.file import transaction
from stream_cgzsl.windows.identity import changed_topics
from stream_cgzsl.windows.recorded import Ledger


def remake(stream: Stream, role: str) -> None:
    topic = stream.topics[role]
    spec = stream.bus.topics()[topic]
    delete_topic(stream.bus, topic)
    stream.bus.create([spec])


def test_a_topic_made_anew_is_refused(stream: Stream, tmp_path: Path) -> None:
    """With more records than before, so that its offsets alone would show nothing."""
    stream.send_tasks(1)
    stream.learn_until(1)
    remake(stream, "features")
    stream.send_tasks(1)
    stream.send_tasks(2)
    features = stream.topics["features"]
    log = stream.learn_to_its_end(8)
    assert f"{features} was deleted and made anew" in log
    assert "start another stream with another --prefix" in log
    assert [problem for problem in stream.check().problems if f"{features} was deleted and made anew" in problem]
    for command in (("replay",), ("copy", stream.url, f"sqlite:///{tmp_path / 'copy.db'}")):
        code, output = stream.run(*command, bus=command == ("replay",))
        assert (code, f"{features} was deleted and made anew" in output) == (8, True), output


def test_a_running_learner_refuses_it_too(embedded: Stream) -> None:
    embedded.send_tasks(1)
    with embedded.learner() as learner:
        embedded.wait_for(1, learner)
        remake(embedded, "features")
        embedded.send_tasks(1)
        embedded.send_tasks(2)
        assert "was deleted and made anew" in learner.wait(8)
    assert embedded.ledger()[-1].number == 1


def test_a_topic_that_was_cut_back_is_refused(embedded: Stream) -> None:
    embedded.send_tasks(1)
    embedded.learn_until(1)
    assert isinstance(embedded.bus, SqliteBus)
    db = embedded.bus.file.open()
    with transaction(db, embedded.bus.url):
        db.execute("UPDATE partitions SET next = next - 1 WHERE topic = ? AND next > 0", (embedded.topics["features"],))
    db.close()
    assert "was learned up to" in embedded.learn_to_its_end(8)


def test_a_copy_has_topics_of_its_own(embedded: Stream, tmp_path: Path) -> None:
    embedded.send_tasks(1)
    embedded.learn_until(1)
    url = f"sqlite:///{tmp_path / 'copy.db'}"
    assert embedded.run("copy", embedded.url, url, bus=False)[0] == 0
    with SqliteBus(url) as copied:
        ledger = Ledger.open(copied, embedded.topics)
        assert ledger is not None
        assert ledger.topic_ids
        assert changed_topics(copied, embedded.topics, ledger) == []
