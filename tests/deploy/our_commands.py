"""Checks that our program accepts a command line and its variables as a deployment file has them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from stream_cgzsl.bus.kafka.settings import OPTIONS, KafkaSettings
from stream_cgzsl.cli import add_commands
from stream_cgzsl.cli.flags import settings_from
from stream_cgzsl.runtime.settings import Settings, variable

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

VARIABLES = {
    *(variable(name) for name in Settings.model_fields),
    *(f"CGZSL_KAFKA_{name.upper()}" for name in (*OPTIONS, "user", "password", "password_file", "key_password_file")),
}


def parsed(command: Sequence[str]) -> argparse.Namespace:
    """The command as our parser reads it. Fails the test if it does not."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_commands(parser)
    try:
        return parser.parse_args(list(command))
    except SystemExit as ended:
        raise AssertionError(f"not a command of ours: {' '.join(command)}") from ended


def settings_of(command: Sequence[str], environ: Mapping[str, str], monkeypatch: object) -> Settings:
    """The settings a worker would start with. Each of our variables must be known and valid."""
    ours = {name: value for name, value in environ.items() if name.startswith("CGZSL_")}
    unknown = sorted(set(ours) - VARIABLES)
    assert not unknown, f"no such variable: {unknown}"
    with monkeypatch.context() as patch:  # type: ignore[attr-defined]
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        for name, value in ours.items():
            patch.setenv(name, value)
        return settings_from(parsed(command))


def kafka_of(settings: Settings, environ: Mapping[str, str], files: Mapping[str, str]) -> KafkaSettings:
    """The Kafka settings of the bus; `files` maps the files that the deployment mounts to real ones."""
    return KafkaSettings.parse(settings.bus, {name: files.get(value, value) for name, value in environ.items()})
