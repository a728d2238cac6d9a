"""Every command of the pages runs as it stands, except those listed here, which need what a test machine has not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import DOCS, Reader, blocks, environment

from stream_cgzsl.bus import broker
from stream_cgzsl.errors import BusUnavailable

RUN_HERE = ("quickstart.md",)
TESTED_BY = {
    "events.md": "tests/schemas/test_events_page.py",
    "data.md": "tests/benchmark/test_data_page.py",
    "embedding.md": "tests/docs/test_embedding_page.py",
}
NO_COMMANDS = ("studies.md",)

NOT_RUN = {
    ("quickstart.md", "a-fresh-machine", "python3 -m venv .venv && . .venv/bin/activate"),
}


@pytest.fixture
def reader(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Someone in an empty folder, with a broker's jars where there are any."""
    typing = Reader(tmp_path, environment(tmp_path))
    try:
        jars = broker.jars()
    except BusUnavailable as error:
        request.node.user_properties.append(("without Kafka", str(error)))
        yield typing
        return
    cache = tmp_path / ".cache"
    cache.mkdir()
    (cache / jars.name).symlink_to(jars)
    port = broker.free_port()
    typing.environment["CGZSL_CACHE"] = str(cache)
    typing.changes = {"broker start": f"broker start --port {port}", "localhost:9092": f"127.0.0.1:{port}"}
    yield typing
    broker.stop_detached(cache / "broker")


def abilities() -> frozenset[str]:
    try:
        broker.jars()
    except BusUnavailable:
        return frozenset()
    return frozenset({"java"})


def test_the_quick_start_leads_where_it_says(reader: Reader) -> None:
    said = reader.type("quickstart.md", abilities())
    right = {bird: int(share) for bird, share in re.findall(r"^(\w+) +(\d+) of 20 right", said, re.MULTILINE)}
    assert {"heron", "owl", "pelican", "ostrich", "parrot"} <= set(right)
    assert min(right.values()) >= 15  # of 20, among 15 birds; those without an example too
    assert said.count("0 problems") == 1
    assert re.findall(r"^(\d+) identical$", said, re.MULTILINE)


def test_what_is_not_run_is_listed() -> None:
    marked = {
        (page, needs, block.text.splitlines()[0])
        for page in RUN_HERE
        for block in blocks(page)
        if (needs := block.option("needs")) not in (None, "java")
    }
    assert marked == NOT_RUN


def test_every_page_is_tested_somewhere() -> None:
    pages = {path.name for path in DOCS.glob("*.md")}
    assert pages == {*RUN_HERE, *TESTED_BY, *NO_COMMANDS}
    for test in TESTED_BY.values():
        assert (DOCS.parent / test).is_file()


def test_links_lead_somewhere() -> None:
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text()):
            assert target.startswith("http") or (DOCS / target).exists(), f"{path.name}: {target}"
