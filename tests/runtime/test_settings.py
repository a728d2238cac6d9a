"""Settings: flags win over variables, variables over a file; an error names the source of the wrong value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.settings import MAX_FILE_BYTES, Settings, load, pairs, to_environ
from stream_cgzsl.schemas import Genesis

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cgzsl.toml"
    path.write_text('prefix = "file"\ntop_k = 3\nquiet_seconds = 7\n[options]\na = 1\n')
    return path


def test_without_any_source_there_are_defaults() -> None:
    assert load({}, None, {}) == Settings()


def test_flags_win_over_variables_and_variables_over_the_file(file: Path) -> None:
    environ = {"CGZSL_PREFIX": "variable", "CGZSL_TOP_K": "4", "PREFIX": "other", "CGZSL_UNKNOWN": "1"}
    settings = load({"prefix": "flag", "top_k": None, "bus": None}, file, environ)
    assert settings == Settings(prefix="flag", top_k=4, quiet_seconds=7, options={"a": 1})


@pytest.mark.parametrize(
    ("flags", "environ", "content", "message"),
    [
        ({"top_k": "many"}, {}, "", "--top-k: top_k: Input should be a valid integer"),
        ({"log_level": "loud"}, {}, "", "--log-level: log_level: Input should be 'debug'"),
        ({}, {"CGZSL_TOP_K": "0"}, "", "CGZSL_TOP_K: top_k: Input should be greater than 0"),
        ({}, {"CGZSL_SIGNED": "perhaps"}, "", "CGZSL_SIGNED: signed: Input should be a valid boolean"),
        ({}, {"CGZSL_MAX_WAIT": "-1"}, "", "CGZSL_MAX_WAIT: max_wait: Input should be greater than or equal to 0"),
        ({}, {"CGZSL_TOPICS": "features"}, "", "CGZSL_TOPICS: 'features' is not of the form name=value"),
        ({}, {"CGZSL_OPTIONS": '{"a": '}, "", "CGZSL_OPTIONS: '{\"a\": ' is not a JSON object"),
        ({}, {}, "top_k = 'x'", "{file}: top_k: Input should be a valid integer"),
        ({}, {}, "topk = 1", "{file}: topk: Extra inputs are not permitted"),
        ({}, {}, "top_k = ", "{file}: not a readable TOML file"),
        ({"top_k": "many"}, {"CGZSL_TOP_K": "1"}, "top_k = 2", "--top-k: top_k"),
    ],
)
def test_an_error_names_its_source(
    tmp_path: Path, flags: dict[str, str], environ: dict[str, str], content: str, message: str
) -> None:
    file = tmp_path / "cgzsl.toml"
    file.write_text(content)
    with pytest.raises(UsageError) as caught:
        load(flags, file, environ)
    assert str(caught.value).startswith(message.replace("{file}", str(file)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no such settings file"),  # noqa: ARG005
        (lambda path: path.mkdir(), "not a readable TOML file"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not a readable TOML file"),
    ],
    ids=["missing", "a folder", "not text"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "cgzsl.toml"
    assert callable(make)
    make(path)
    with pytest.raises(UsageError, match=f"cgzsl.toml: {message}"):
        load({}, path, {})


def test_a_settings_file_may_not_be_too_large(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b"#" * MAX_FILE_BYTES)
    load({}, file, {})
    file.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UsageError, match="at most 1,048,576 bytes"):
        load({}, file, {})


@pytest.mark.parametrize("text", [f"options = {DEEP}", "options = 3", "\x00"], ids=["deep", "a number", "a zero byte"])
def test_a_hostile_settings_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=f"^{file}"):
        load({}, file, {})


@pytest.mark.parametrize("text", ["{" + DEEP, '{"a":' + DEEP + "}", "{not json"], ids=["deep", "deeper", "not JSON"])
def test_a_hostile_variable_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^CGZSL_OPTIONS"):
        load({}, None, {"CGZSL_OPTIONS": text})


def test_pairs_are_read_as_toml_where_they_can_be() -> None:
    items = ["a=1", "b = 1.5", "c=true", 'd="x y"', "e=plain", "f=my.topic=x", "g=[1, 2]", "h=", "i=1.2.3"]
    assert pairs(items, "--options") == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": "x y",
        "e": "plain",
        "f": "my.topic=x",
        "g": [1, 2],
        "h": "",
        "i": "1.2.3",
    }


@pytest.mark.parametrize("item", ["a", "=1", " =1", ""])
def test_an_item_without_name_and_value_is_refused(item: str) -> None:
    with pytest.raises(UsageError, match=r"--options: .* is not of the form name=value"):
        pairs([item], "--options")


def test_a_table_can_be_given_in_a_variable() -> None:
    environ = {"CGZSL_TOPICS": "features=my.vectors,samples=asks", "CGZSL_OPTIONS": '{"text": "a,b", "n": [1, 2]}'}
    settings = load({}, None, environ)
    assert settings.topics == {"features": "my.vectors", "samples": "asks"}
    assert settings.options == {"text": "a,b", "n": [1, 2]}


def test_another_process_gets_the_same_settings() -> None:
    settings = Settings(
        bus="sqlite:////tmp/a b.db",
        prefix="p",
        topics={"features": "my.vectors"},
        attributes=3,
        features=4,
        signed=True,
        shared=False,
        seed=-1,
        options={"text": "a,b=c", "flag": True, "rate": 1e-3},
        max_wait=0.0,
        port=0,
        log_level="warning",
    )
    assert load({}, None, to_environ(settings)) == settings
    code = "from stream_cgzsl.runtime.settings import load; print(load({}).model_dump_json())"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CGZSL_")}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environ | to_environ(settings), capture_output=True, check=True
    ).stdout
    assert Settings.model_validate_json(printed) == settings


def test_the_genesis_comes_from_the_settings() -> None:
    settings = Settings(attributes=3, features=4, signed=True, shared=True, seed=5)
    assert settings.genesis() == Genesis(attributes=3, features=4, signed=True, shared=True, seed=5)


@pytest.mark.parametrize("given", [{}, {"attributes": 3}, {"features": 3}])
def test_a_new_stream_needs_both_lengths(given: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=r"'cgzsl' is new .* start the learner once with --attributes N --features M"):
        Settings(**given).genesis()


def test_every_setting_has_a_description() -> None:
    assert [name for name, info in Settings.model_fields.items() if not info.description] == []


def test_a_decoder_without_a_role_is_that_of_every_role() -> None:
    every = dict.fromkeys(("attributes", "features", "samples", "holdout"), "my:read")
    assert load({}, None, {"CGZSL_DECODER": "my:read"}).decoder == every
    assert load({}, None, {"CGZSL_DECODER": "my:read,features=my:other"}).decoder == {**every, "features": "my:other"}
    assert load({}, None, to_environ(Settings(decoder={"features": "a.b:c"}))).decoder == {"features": "a.b:c"}
