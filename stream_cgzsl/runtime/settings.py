"""Every setting in one place: its name, its meaning and its default.

Flags win over `CGZSL_*` variables, those over a TOML file. A flag `--quiet-seconds` is the variable
`CGZSL_QUIET_SECONDS` and the key `quiet_seconds`.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError

from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.secrets import without_password
from stream_cgzsl.schemas import DECODED_ROLES, Genesis

DEFAULT_LEARNER = "evidence"

ALONE: Mapping[str, tuple[str, ...]] = {"decoder": DECODED_ROLES}
"""Tables in which a value without a name is that of all of these names."""

MAX_FILE_BYTES = 1024 * 1024
"""The largest settings file that is read."""


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    bus: str = Field("sqlite:///cgzsl.db", description="where the topics are: sqlite:///path.db or kafka://host:port")
    prefix: str = Field("cgzsl", description="topics are named PREFIX.ROLE")
    topics: dict[str, str] = Field({}, description="a name of its own for a role: --topics features=my.vectors")
    decoder: dict[str, str] = Field(
        {}, description="what reads records in another format: --decoder features=module:function, or for every role"
    )

    attributes: PositiveInt | None = Field(None, description="length of attribute vectors (first start only)")
    features: PositiveInt | None = Field(None, description="length of feature vectors (first start only)")
    signed: bool = Field(False, description="features can be negative (first start only)")
    shared: bool | None = Field(
        None, description="attributes live in the feature space; unset: find out (first start only)"
    )
    seed: int = Field(0, description="of every random number (first start only)")

    learner: str = Field(DEFAULT_LEARNER, description="which learner")
    options: dict[str, Any] = Field({}, description="the learner's own options: --options name=value")
    allow_exemplars: bool = Field(False, description="let a learner that keeps a few examples of each class do so")
    device: str = Field("auto", description="cpu, cuda, or auto")
    threads: PositiveInt = Field(1, description="torch threads; part of the environment that decides the last bits")
    quiet_seconds: PositiveFloat = Field(2.0, description="a new class is served after this long without another one")
    count: PositiveInt | None = Field(None, description="close a window when this many features wait")
    max_age: PositiveFloat | None = Field(
        None, description="close a window this many seconds after its first feature came"
    )
    event_time: PositiveFloat | None = Field(
        None, description="close windows of this many seconds of the records' own time"
    )
    event_delay: float = Field(0.0, ge=0, description="seconds of that time to wait for late records")
    event_idle: PositiveFloat = Field(10.0, description="a partition without news for this long is not waited for")
    dead_letter_limit: NonNegativeInt | None = Field(
        None, description="stop, with exit code 9, before a window with more"
    )
    memory_gb: PositiveFloat = Field(2.0, description="for the features kept of one window")
    snapshot_every: PositiveInt = Field(1, description="write the learner's state at every k-th window")

    top_k: PositiveInt = Field(5, description="candidates in an answer")
    batch: PositiveInt = Field(256, description="samples answered at once")
    batch_seconds: float = Field(0.002, ge=0, description="under load, how long samples gather to a batch")
    reject_score: float | None = Field(None, description="answer `unknown` where the best score is below this")
    max_wait: float = Field(30.0, ge=0, description="seconds a sample waits for the first generation")

    holdout_gb: PositiveFloat = Field(1.0, description="labelled test features an evaluator keeps in memory")
    class_series: NonNegativeInt = Field(
        0, description="export the accuracies of this many single classes, the worst ones"
    )

    host: str = Field("127.0.0.1", description="address of /metrics, /healthz and /readyz")
    port: NonNegativeInt | None = Field(None, description="port of these pages; 0: any free one; unset: none")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="how much to log")

    def genesis(self) -> Genesis:
        """What the first start fixes. Raises `UsageError` while the two lengths are not given."""
        if self.attributes is None or self.features is None:
            raise UsageError(
                f"{without_password(self.bus)}: the stream {self.prefix!r} is new and has no lengths of vectors yet; "
                "start the learner once with --attributes N --features M (and --signed if features can be negative)"
            )
        return Genesis(
            attributes=self.attributes, features=self.features, signed=self.signed, shared=self.shared, seed=self.seed
        )


def load(flags: Mapping[str, Any], file: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings as the three sources give them. Raises `UsageError` that names the source of what is wrong."""
    environ = os.environ if environ is None else environ
    values: dict[str, tuple[str, Any]] = {}
    for name, value in _read_file(file).items():
        values[name] = (str(file), value)
    for field, info in Settings.model_fields.items():
        text = environ.get(variable(field))
        if text is not None:
            source, is_table = variable(field), "dict" in str(info.annotation)
            values[field] = (source, _table(text, source, ALONE.get(field, ())) if is_table else text)
    for name, value in flags.items():
        if value is not None:
            values[name] = (f"--{name.replace('_', '-')}", value)
    try:
        return Settings.model_validate({name: value for name, (_, value) in values.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        source = values.get(name, (name, None))[0]
        raise UsageError(f"{source}: {name}: {first['msg']}") from error


def variable(setting: str) -> str:
    """The environment variable of a setting."""
    return f"CGZSL_{setting.upper()}"


def to_environ(settings: Settings) -> dict[str, str]:
    """The variables that give these settings to another process."""
    values = settings.model_dump(exclude_defaults=True)
    return {
        variable(name): json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in values.items()
        if value is not None
    }


def _table(text: str, source: str, alone: tuple[str, ...]) -> dict[str, Any]:
    """`a=1,b=x`, or a JSON object for values that hold commas."""
    if not text.startswith("{"):
        return pairs(text.split(","), source, alone)
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"{source}: {text[:200]!r} is not a JSON object: {error}") from error


def _read_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(f"{file}: a settings file has at most {MAX_FILE_BYTES:,} bytes; is it the right file?")
        return tomllib.loads(data.decode())
    except FileNotFoundError as error:
        raise UsageError(f"{file}: there is no such settings file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise UsageError(f"{file}: not a readable TOML file: {error}") from error


def pairs(items: list[str], source: str, alone: tuple[str, ...] = ()) -> dict[str, Any]:
    """`["a=1", "b=x"]` -> `{"a": 1, "b": "x"}`; values are read as TOML if possible. `source` is for the error.

    A value without a name is that of every name in `alone`, if there are any.
    """
    result: dict[str, Any] = {}
    for item in (named for given in items for named in _named(given, alone)):
        name, sign, text = item.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"{source}: {item!r} is not of the form name=value")
        try:
            result[name.strip()] = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            result[name.strip()] = text
    return result


def _named(item: str, names: tuple[str, ...]) -> list[str]:
    return [item] if "=" in item or not names else [f"{name}={item}" for name in names]
