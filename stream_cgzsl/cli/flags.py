"""Flags generated from the settings: one definition gives the flag, its help, the variable and the TOML key."""

from __future__ import annotations

import argparse
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.runtime.functions import load_function
from stream_cgzsl.runtime.settings import ALONE, Settings, load, pairs
from stream_cgzsl.schemas import Decoder
from stream_cgzsl.schemas.fields import Name

STREAM = ("bus", "prefix", "topics", "log_level")
DECODING = ("decoder",)
GENESIS = ("attributes", "features", "signed", "shared", "seed")
LEARNING = (
    *("learner", "options", "allow_exemplars", "device", "threads"),
    *("memory_gb", "snapshot_every", "dead_letter_limit"),
)
CUTS = ("quiet_seconds", "count", "max_age", "event_time", "event_delay", "event_idle")
SERVING = ("top_k", "batch", "batch_seconds", "reject_score", "max_wait")
EVALUATION = ("holdout_gb", "class_series")
PAGES = ("host", "port")

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def add(parser: argparse.ArgumentParser, *groups: tuple[str, ...]) -> None:
    """Adds a flag for each of these settings, and `--settings FILE`."""
    parser.add_argument("--settings", type=Path, metavar="FILE", help="a TOML file with settings")
    for name in (name for group in groups for name in group):
        info = Settings.model_fields[name]
        _add_one(parser, name, info)


def _add_one(parser: argparse.ArgumentParser, name: str, info: FieldInfo) -> None:
    flag = "--" + name.replace("_", "-")
    kind: Any = info.annotation
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(member for member in get_args(kind) if member is not types.NoneType)
    text = (info.description or "").replace("%", "%%")
    if info.default not in (None, False, {}):
        text += f" (default: {info.default})"
    if kind is bool:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
    elif get_origin(kind) is dict:
        parser.add_argument(flag, action="append", metavar="NAME=VALUE", help=text)
    elif get_origin(kind) is Literal:
        parser.add_argument(flag, choices=get_args(kind), help=text)
    else:
        parser.add_argument(flag, metavar=name.upper(), help=text)


def positive(text: str) -> int:
    """The type of a flag that is a count of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def words(text: str) -> str:
    """The type of a flag that goes into the ledger unchanged."""
    try:
        return _NAME.validate_python(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError("expected 1 to 256 characters on one line") from error


def settings_from(arguments: argparse.Namespace) -> Settings:
    """The settings of a command: flags override the environment, which overrides the file. Raises `UsageError`."""
    flags: dict[str, Any] = {name: getattr(arguments, name, None) for name in Settings.model_fields}
    for table in ("topics", "options", "decoder"):
        if flags[table] is not None:
            flags[table] = pairs(flags[table], f"--{table}", ALONE.get(table, ()))
    return load(flags, getattr(arguments, "settings", None))


def topics_from(settings: Settings) -> Topics:
    return Topics(settings.prefix, settings.topics)


def decoding_topics(settings: Settings) -> Topics:
    """As `topics_from`, for commands that read the records of others. Raises `UsageError` for a wrong decoder."""
    read = {role: Decoder(name, load_function(name, "--decoder")) for role, name in settings.decoder.items()}
    return Topics(settings.prefix, settings.topics, read)


@contextmanager
def open_stream(arguments: argparse.Namespace, roles: Iterable[str]) -> Iterator[tuple[Bus, Topics]]:
    """The bus and the topics of a command, connected; the topics of these roles must exist and be kept as they must."""
    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, roles)
        yield bus, topics
