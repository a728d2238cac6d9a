"""docs/events.md: its tables match the code, and its snippets produce the events they claim."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import kafka
import numpy as np
import pytest

from stream_cgzsl.schemas import (
    ROLES,
    Attribute,
    Boundary,
    Event,
    Feature,
    Holdout,
    Message,
    Retirement,
    Role,
    Rollback,
    Sample,
    VectorEvent,
    decode,
    encode,
)
from stream_cgzsl.schemas.errors import REASONS, STREAM_REASONS
from stream_cgzsl.schemas.layout import ROLE_DECODERS

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
KEPT = {"keep": "for ever", "expire": "as you like", "compact": "newest per key"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def table(first_column: str) -> list[list[str]]:
    lines = PAGE[PAGE.index(f"| {first_column} |") :].split("\n\n")[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def floats(*numbers: float) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.float32)


EVERY_INPUT: list[tuple[str, Event]] = [
    ("cgzsl.attributes", Attribute(class_id="zebra", vector=floats(1, 0, 0.5))),
    ("cgzsl.features", Feature(class_id="zebra", vector=floats(0.2, 0.7, 0.1, 0), id="img-7")),
    ("cgzsl.holdout", Holdout(class_id="zebra", vector=floats(0.3, 0.6, 0.1, 0), id="img-8")),
    ("cgzsl.control", Boundary(reason="first task")),
    ("cgzsl.samples", Sample(request_id="request-1", vector=floats(0.2, 0.6, 0.2, 0))),
    ("cgzsl.attributes", Retirement(class_id="zebra")),
]


def read(topic: str, key: bytes | None, value: bytes | None, headers: Any = ()) -> tuple[str, Event]:
    return topic, decode(topic.removeprefix("cgzsl."), key, value, tuple(headers))


# ---- tables


def test_the_topic_table_matches_the_code() -> None:
    def row(role: Role) -> list[str]:
        events = ", ".join(f"`{event.type_name()}`" for event in role.events)
        if role.tombstone:
            events += f"; empty value: `{role.tombstone.type_name()}`"
        return [role.name, role.events[0].KEY or "-", events, KEPT[role.cleanup], "1" if role.single else "any"]

    inputs_first = sorted(ROLES.values(), key=lambda role: not role.input)
    assert table("role") == [row(role) for role in inputs_first]


def test_the_header_table_has_every_header_of_the_inputs() -> None:
    understood = ROLE_DECODERS["attributes"].headers | ROLE_DECODERS["samples"].headers
    assert {row[0].strip("`") for row in table("header")} == understood - {"content-type"}


def test_the_reasons_match_the_code() -> None:
    assert {row[0].strip("`"): row[1] for row in table("reason")} == REASONS | STREAM_REASONS


def test_the_json_object_in_the_text_is_a_feature() -> None:
    value = re.search(r'`(\{"vector".*?\})`', PAGE)
    assert value is not None
    assert decode("features", b"zebra", value[1].encode()) == Feature(
        class_id="zebra",
        vector=floats(0.25, 1, 0),
        id="img-7",
        time="2025-01-31T12:00:00Z",  # type: ignore[arg-type]
    )


def test_the_rollback_in_the_text_is_one() -> None:
    value = re.search(r'`(\{"type".*?\})`', PAGE)
    assert value is not None
    assert decode("control", None, value[1].encode()) == Rollback(to=3)


# ---- Python


def test_the_python_snippet_makes_every_input() -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)
    assert [read(*record) for record in names["records"]] == EVERY_INPUT
    for (_, event), (_, key, value, headers) in zip(EVERY_INPUT, names["records"], strict=True):
        if isinstance(event, VectorEvent):  # then our own encoder writes the same, and many are read together
            assert encode(event) == Message(key, value, tuple(headers))


def test_the_python_snippet_writes_a_time_we_read() -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[0] + "\nfrom datetime import UTC, datetime\nnow = datetime.now(UTC)", names)
    record = names["vector_record"]("cgzsl.samples", "r", [1], time=names["now"])
    assert read(*record)[1] == Sample(request_id="r", vector=floats(1), time=names["now"])


def test_the_sending_snippet_calls_kafka_python_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    producers = mock.create_autospec(kafka.KafkaProducer)
    known = set(kafka.KafkaProducer.DEFAULT_CONFIG)
    monkeypatch.setattr(kafka, "KafkaProducer", producers)
    exec(blocks("python")[1], {"records": [("cgzsl.control", None, b"{}", [("a", b"b")])]})
    assert set(producers.call_args.kwargs) <= known
    assert producers.return_value.mock_calls == [
        mock.call.send("cgzsl.control", key=None, value=b"{}", headers=[("a", b"b")]),
        mock.call.flush(),
    ]


def test_the_encode_snippet_makes_a_feature() -> None:
    names: dict[str, Any] = {"np": np}
    exec(blocks("python")[2], names)
    message = Message(names["key"], names["value"], names["headers"], names["timestamp_ms"])
    assert message == encode(Feature(class_id="zebra", vector=np.ones(4), id="img-9"))


# ---- the console producer


def test_the_console_snippets_make_every_input() -> None:
    found = []
    for block in blocks("sh"):
        ((command, lines),) = re.findall(r"^(.*) <<'END'\n(.*)END\n$", block, flags=re.DOTALL)
        (topic,) = re.findall(r"--topic (\S+)", command)
        properties = dict(re.findall(r"--reader-property ([a-z.]+)='?([^'\s]+)'?", command))
        for line in lines.splitlines():
            key, value = line.split(properties["key.separator"], 1) if "parse.key" in properties else (None, line)
            null = value == properties.get("null.marker")
            found.append(read(topic, key and key.encode(), None if null else value.encode()))
    attributes = [
        ("cgzsl.attributes", Attribute(class_id="zebra", vector=floats(1, 0, 0.5), name="Zebra")),
        ("cgzsl.attributes", Attribute(class_id="okapi", vector=floats(0.5, 0.5, 1))),
        ("cgzsl.attributes", Retirement(class_id="quagga")),
    ]
    assert found == attributes + [record for record in EVERY_INPUT if record[0] != "cgzsl.attributes"]


# ---- Java


PRINTER = """
import java.util.HexFormat;

public class Printer {
    static String hex(byte[] bytes) {
        return bytes == null ? "null" : "x" + HexFormat.of().formatHex(bytes);
    }

    public static void main(String[] arguments) {
        for (var record : CgzslProducer.records()) {
            String key = record.key();
            StringBuilder line = new StringBuilder(record.topic());
            line.append(" ").append(hex(key == null ? null : key.getBytes(java.nio.charset.StandardCharsets.UTF_8)));
            line.append(" ").append(hex(record.value()));
            for (var header : record.headers()) {
                line.append(" ").append(header.key()).append("=").append(hex(header.value()));
            }
            System.out.println(line);
        }
    }
}
"""


def jar(group: str, artifact: str) -> Path:
    """A jar Maven has fetched before, the newest there is; nothing is downloaded here."""
    repository = Path.home() / ".m2" / "repository" / Path(*group.split(".")) / artifact
    found = sorted(repository.glob(f"*/{artifact}-*.jar"))
    if not found:
        pytest.skip(f"{artifact} is not in {repository}: mvn dependency:get fetches it")
    return found[-1]


@pytest.fixture(scope="module")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here: install a JDK of version 17 or later")
    folder = tmp_path_factory.mktemp("java")
    (folder / "CgzslProducer.java").write_text(blocks("java")[0])
    (folder / "Printer.java").write_text(PRINTER)
    classpath = f"{folder}:{jar('org.apache.kafka', 'kafka-clients')}:{jar('org.slf4j', 'slf4j-api')}"
    command = ["javac", "-Xlint:all,-options", "-Werror", "-cp", classpath, "-d", str(folder)]
    done = subprocess.run(
        [*command, *map(str, folder.glob("*.java"))], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder, classpath


def test_the_java_class_makes_every_input(java_classes: tuple[Path, str]) -> None:
    _, classpath = java_classes
    command = ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", classpath, "Printer"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()

    def unhex(text: str) -> bytes | None:
        return None if text == "null" else bytes.fromhex(text[1:])

    found = []
    for line in lines:
        topic, key, value, *headers = line.split(" ")
        pairs = [header.split("=") for header in headers]
        found.append(read(topic, unhex(key), unhex(value), [(name, unhex(content)) for name, content in pairs]))
    assert found == EVERY_INPUT
