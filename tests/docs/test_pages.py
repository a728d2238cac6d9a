"""Every command of the pages runs as it stands, except those listed here, which need what a test machine has not."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import rights_table
from helpers import CLASSES, NO_DESCRIBE, Producer, learner, new_bus, settings_for, wait_for_window
from pages import DOCS, Reader, blocks, environment

from stream_cgzsl.bus import broker
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable

RUN_HERE = ("quickstart.md", "operating.md", "method.md", "architecture.md")
TESTED_BY = {
    "events.md": "tests/schemas/test_events_page.py",
    "data.md": "tests/benchmark/test_data_page.py",
    "embedding.md": "tests/docs/test_embedding_page.py",
}
WITHOUT_TEST = {"studies.md": "its commands take a data set and long; each is tested on a small one"}

NOT_RUN = {
    ("quickstart.md", "a-fresh-machine", "python3 -m venv .venv && . .venv/bin/activate"),
    ("operating.md", "docker", "docker compose -f deploy/compose/compose.yml up --build"),
    ("operating.md", "kubernetes", "kubectl apply -k deploy/kubernetes/overlays/secure"),
    ("operating.md", "systemd", "python3 -m venv /opt/stream-cgzsl && /opt/stream-cgzsl/bin/pip install ."),
    ("operating.md", "cluster", "export CGZSL_BUS=kafka://broker-1:9093,broker-2:9093 CGZSL_KAFKA_USER=birds-learner"),
    ("method.md", "data", "python benchmarks/accuracy.py"),
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


def test_the_operators_commands_run(reader: Reader, kafka_url: str, tmp_path: Path) -> None:
    """A stream of that name, learned on one broker, saved to a file and restored on another."""
    topics = Topics(f"birds-{uuid.uuid4().hex[:8]}")
    with new_bus(kafka_url, 2, topics) as bus, learner(settings_for(bus, topics, **NO_DESCRIBE)) as worker:
        producer = Producer(bus, topics)
        producer.describe(*CLASSES)
        producer.teach(*CLASSES[:4])
        producer.boundary()
        wait_for_window(bus, 1, topics, worker.alive)
    standby = broker.start(tmp_path / "standby")
    try:
        reader.changes = {
            "kafka://localhost:9092": kafka_url,
            "kafka://standby:9092": standby.url,
            "--prefix birds": f"--prefix {topics.prefix}",
        }
        said = reader.type("operating.md", abilities())
    finally:
        standby.stop()
    assert said.count(" 0 problems") == 2  # in the file, and on the broker it was restored to
    assert "--operation Read --topic" in said


def test_the_table_of_rights_is_that_of_the_code() -> None:
    page = (DOCS / "operating.md").read_text()
    assert "\n".join(rights_table.rows()) in page


@pytest.mark.parametrize("page", ["method.md", "architecture.md"])
def test_the_other_pages_commands_run(reader: Reader, page: str) -> None:
    reader.type(page, abilities())


def test_the_measured_figures_are_those_of_the_readme() -> None:
    figures = r"^\| `([\w-]+)`.*?((?:\| \d[\d. /*]+){2})\|$"
    page, readme = (
        dict(re.findall(figures, path.read_text(), re.MULTILINE))
        for path in (DOCS / "method.md", DOCS.parent / "README.md")
    )
    assert len(page) == 7 and page == readme


def test_every_benchmark_a_page_names_is_there() -> None:
    named = {name for path in DOCS.glob("*.md") for name in re.findall(r"benchmarks/\w+\.py", path.read_text())}
    assert named and all((DOCS.parent / name).is_file() for name in named)


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
    assert pages == {*RUN_HERE, *TESTED_BY, *WITHOUT_TEST}
    for test in TESTED_BY.values():
        assert (DOCS.parent / test).is_file()


def test_links_lead_somewhere() -> None:
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text()):
            assert target.startswith("http") or (DOCS / target).exists(), f"{path.name}: {target}"


def test_pictures_can_be_drawn_on_light_and_on_dark() -> None:
    for path in DOCS.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme: dark" in path.read_text(), path.name
