"""Every command of the pages runs unchanged, except those listed here, which need more than a test machine has."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import rights_table
from helpers import CLASSES, NO_DESCRIBE, Producer, learner, new_bus, settings_for, wait_for_window
from pages import DOCS, Reader, blocks, environment

from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.demo import broker
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.learners import BASELINES, LEARNERS

ROOT = DOCS.parent
PACKAGE = ROOT / "stream_cgzsl"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
RUN_HERE = ("quickstart.md", "operating.md", "method.md", "architecture.md")
TESTED_BY = {
    "events.md": "tests/schemas/test_events_page.py",
    "data.md": "tests/benchmark/test_data_page.py",
    "embedding.md": "tests/docs/test_embedding_page.py",
    "your-own-words.md": "tests/docs/test_your_own_words.py",
}
WITHOUT_TEST = {
    "studies.md": "its commands need a data set and a long time; each is tested on a small one",
    "glossary.md": "it has no commands",
}

NOT_RUN = {
    ("quickstart.md", "a-fresh-machine", "python3 -m venv .venv && . .venv/bin/activate"),
    ("operating.md", "docker", "docker compose -f deploy/compose/compose.yml up --build"),
    ("operating.md", "docker", "make containers"),
    ("operating.md", "kubernetes", "kubectl apply -k deploy/kubernetes/overlays/secure"),
    ("operating.md", "systemd", "python3 -m venv /opt/stream-cgzsl && /opt/stream-cgzsl/bin/pip install ."),
    ("operating.md", "cluster", "export CGZSL_BUS=kafka://broker-1:9093,broker-2:9093 CGZSL_KAFKA_USER=birds-learner"),
    ("method.md", "data", "python benchmarks/accuracy.py"),
    ("method.md", "data", "python benchmarks/accuracy.py --seeds 1 --learners ewc a-gem nm-zsl"),
}

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def reader(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """A reader in an empty folder, with a broker's jars where there are any."""
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


def test_the_readme_describes_teaches_and_asks(reader: Reader) -> None:
    (shown,) = (block.text for block in blocks("../README.md") if block.language == "text")
    assert reader.type("../README.md", abilities()) == shown


def test_the_producer_on_the_events_page_sends_what_it_says(tmp_path: Path) -> None:
    (text,) = (block.text for block in blocks("events.md") if "import Producer" in block.text)
    url = f"sqlite:///{tmp_path / 'bus.db'}"
    exec(compile(text.replace("kafka://localhost:9092", url), "events.md", "exec"), {})
    with connect(url) as bus:
        sent = {role: sum(bus.end_offsets(f"cgzsl.{role}").values()) for role in ("attributes", "features", "control")}
    assert sent == {"attributes": 1, "features": 1, "control": 1}


def test_the_quick_start_leads_where_it_says(reader: Reader) -> None:
    said = reader.type("quickstart.md", abilities())
    right = {bird: int(share) for bird, share in re.findall(r"^(\w+) +(\d+) of 20 right", said, re.MULTILINE)}
    assert {"heron", "owl", "pelican", "ostrich", "parrot"} <= set(right)
    assert min(right.values()) >= 15  # of 20, among 15 birds; those without an example too
    assert said.count("0 problems") == 1
    assert re.findall(r"^(\d+) identical$", said, re.MULTILINE)


def test_the_operators_commands_run(reader: Reader, kafka_url: str, tmp_path: Path) -> None:
    """A learned stream of that name on one broker, saved to a file and restored on another."""
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
    figures = r"^\| `([\w-]+)`.*?((?:\| (?:\d[\d. /*]+|not yet )){2})\|$"
    page, readme = (
        dict(re.findall(figures, path.read_text(), re.MULTILINE)) for path in (DOCS / "method.md", ROOT / "README.md")
    )
    ours = {name: found for name, found in page.items() if name not in BASELINES}
    assert set(ours) == set(LEARNERS) - set(BASELINES) and ours == readme


def test_the_picture_of_the_rooms_is_drawn_from_the_imports(tmp_path: Path) -> None:
    subprocess.run([sys.executable, DOCS / "rooms.py", tmp_path], check=True)
    assert (tmp_path / "rooms.svg").read_text() == (DOCS / "rooms.svg").read_text(), "run python docs/rooms.py"


def test_every_file_a_page_names_exists() -> None:
    folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
    for path in PAGES:
        text = path.read_text()
        modules = re.findall(r"`((?:\w+/)+\w+\.py)`", text)  # from the root or from the package
        others = re.findall(rf"(?<![\w/.-])((?:{folders})/[\w./-]*\w/?)(?![\w<*])", text)
        for name in {*modules, *others}:
            assert (ROOT / name).exists() or (PACKAGE / name).exists(), f"{path.name}: {name}"


def test_the_walks_of_the_architecture_page_name_functions_that_exist() -> None:
    steps = re.findall(r"^\| `([\w/]+\.py)` \| `(\w+)` \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    assert len(steps) > 20
    for file, name in steps:
        assert re.search(rf"^ *(?:def|class) {name}\b", (PACKAGE / file).read_text(), re.MULTILINE), f"{file}: {name}"


def test_lines_fit_120_columns() -> None:
    """Prose does; tables, code and the addresses of links may be longer."""
    for path in PAGES:
        prose = _FENCED.sub("", path.read_text())
        long = [line for line in prose.splitlines() if len(line) > 120 and not re.match(r"\||\[\w+\]: ", line)]
        assert long == [], path.name


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
        assert (ROOT / test).is_file()


def test_links_lead_somewhere() -> None:
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text()):
            assert target.startswith("http") or (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_readme_and_the_architecture_page_link_the_glossary() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text()
    assert "(glossary.md)" in (DOCS / "architecture.md").read_text()


def test_pictures_are_readable_in_light_and_dark() -> None:
    for path in DOCS.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme: dark" in path.read_text(), path.name
