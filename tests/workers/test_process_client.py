"""A worker says what its records go through: in its first log line and in its metrics."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.runtime.metrics import ScorerMetrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.workers import process


class Idle:
    def run(self) -> None: ...

    def why_not_ready(self) -> str | None:
        return None


def test_the_client_is_in_the_log_and_in_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    used: list[str] = []

    def build(bus: Bus, *_: object) -> Idle:
        used.append(bus.client)
        return Idle()

    for around in ("start_logging", "stop_on_signals", "_reduce_garbage_collection"):
        monkeypatch.setattr(process, around, lambda *_: None)
    settings, metrics = Settings(bus=f"sqlite:///{tmp_path / 'bus.db'}", port=None), ScorerMetrics()
    with caplog.at_level(logging.INFO, "worker"):
        process.serve(settings, Topics("t"), metrics, build)  # type: ignore[arg-type]
    assert used[0].startswith("sqlite ")
    assert f"through {used[0]}" in caplog.text
    (info,) = [family for family in metrics.registry.collect() if family.name == "cgzsl_build"]
    assert info.samples[0].labels["client"] == used[0]
