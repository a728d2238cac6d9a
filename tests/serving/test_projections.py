"""Classifying in your own process: with the newest generation of a stream, or with one from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers import TOPICS, new_bus, sqlite_url
from patience import PATIENCE_SECONDS, until
from served_stream import AXES, CLASSES, commit, turned

from stream_cgzsl.cli import main
from stream_cgzsl.errors import NotReady, TopicMissing
from stream_cgzsl.serving import file as generation_file
from stream_cgzsl.serving.projections import Match, Projections


def test_following_answers_with_the_newest_generation(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with new_bus(url) as bus:
        commit(bus, 0)
        commit(bus, 1, turned(1))
        with Projections.follow(url, topics=TOPICS) as projections:
            assert projections.wait(PATIENCE_SECONDS)
            assert projections.classify(AXES[3]) == [[Match(CLASSES[3], 1.0, False)]]
            commit(bus, 2, turned(2))
            until(lambda: projections.generation is not None and projections.generation.number == 2, "generation 2")
            assert projections.classify(AXES[3:5]) == [[Match(CLASSES[4], 1.0, True)], [Match(CLASSES[5], 1.0, False)]]
        assert projections.classify(AXES[3]) == [[Match(CLASSES[4], 1.0, True)]]  # closed, and it still answers


def test_before_the_first_generation_nothing_is_ready(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with new_bus(url) as bus:
        commit(bus, 0)
        with Projections.follow(url, topics=TOPICS) as projections:
            assert not projections.wait(0.2)
            with pytest.raises(NotReady):
                projections.classify(AXES[0])


def test_an_error_that_ends_the_following_is_raised(tmp_path: Path) -> None:
    projections = Projections.follow(sqlite_url(tmp_path), prefix="nobody")
    with projections, pytest.raises(TopicMissing, match=r"nobody\.windows"):
        projections.wait(PATIENCE_SECONDS)


def test_features_of_another_length_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.safetensors"
    generation_file.write(turned(1), file)
    with pytest.raises(ValueError, match="features have 3 numbers, this stream's have 16"):
        Projections.load(file).classify(np.zeros(3, np.float32))


def test_an_exported_generation_answers_as_the_stream_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, file = sqlite_url(tmp_path), tmp_path / "two.safetensors"
    with new_bus(url) as bus:
        commit(bus, 0)
        for number in (1, 2, 3):
            commit(bus, number, turned(number))
    assert main(["export", str(file), "--generation", "2", "--bus", url, "--prefix", "t"]) == 0
    assert capsys.readouterr().out == f"generation 2, 16 classes, {turned(2).digest[:12]}: {file}\n"
    loaded = Projections.load(file)
    assert loaded.generation is not None
    assert loaded.generation.digest == turned(2).digest
    assert loaded.classify(AXES[3], k=1) == [[Match(CLASSES[4], 1.0, True)]]


def test_a_generation_that_does_not_exist_cannot_be_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = sqlite_url(tmp_path)
    with new_bus(url) as bus:
        commit(bus, 0)
    assert main(["export", str(tmp_path / "x"), "--bus", url, "--prefix", "t"]) == 2
    assert "there is no generation 0; the ledger has 1 to 0" in capsys.readouterr().err
