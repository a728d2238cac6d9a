"""The rooms of the package: which may import which, which do without torch, and what the package offers."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

import stream_cgzsl

ROOT = Path(__file__).parents[1]
CONTRACTS = [
    contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
]
WRONG_IMPORTS = {
    "windows/window.py": "from stream_cgzsl.workers import learner",  # upwards
    "learners/kernel/ridge.py": "from stream_cgzsl.learners.gan import losses",
    "bus/sqlite/bus.py": "from stream_cgzsl.bus.kafka import bus",
    "windows/offsets.py": "import torch",
}
"""One for each contract."""

WITHOUT_TORCH = (
    *("stream_cgzsl", "stream_cgzsl.schemas", "stream_cgzsl.bus", "stream_cgzsl.windows", "stream_cgzsl.evaluation"),
    *("stream_cgzsl.serving.projections", "stream_cgzsl.workers.scorer", "stream_cgzsl.workers.evaluator"),
)
IMPORT_ALL = """
import importlib, pkgutil, sys

def modules(name):
    package = importlib.import_module(name)
    yield name
    if name != "stream_cgzsl":
        for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}."):
            yield found.name

for name in modules(sys.argv[1]):
    importlib.import_module(name)
    if "torch" in sys.modules:
        sys.exit(f"{name} imports torch")
"""


def lint(folder: Path) -> tuple[int, str]:
    """Exit code and output of `lint-imports` for the package in a folder."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "500"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_room_imports_only_what_it_may() -> None:
    code, output = lint(ROOT)
    assert code == 0, output
    assert [name for name in CONTRACTS if f"{name} KEPT" not in output] == []


def test_a_wrong_import_breaks_its_contract(tmp_path: Path) -> None:
    for folder in ("stream_cgzsl", "schemas", "workers"):
        copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for name, line in WRONG_IMPORTS.items():
        path = tmp_path / "stream_cgzsl" / name
        path.write_text(f"{path.read_text()}\n{line}\n")
    code, output = lint(tmp_path)
    assert code == 1, output
    assert [name for name in CONTRACTS if f"{name} BROKEN" not in output] == []


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_a_room_that_does_not_learn_does_not_import_torch(room: str) -> None:
    """It takes seconds and half a gigabyte: producers and scorers do without it."""
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, room], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_everything_the_package_offers_exists() -> None:
    assert len(stream_cgzsl.__all__) == len(set(stream_cgzsl.__all__))
    for name in stream_cgzsl.__all__:
        assert hasattr(stream_cgzsl, name), name
    with pytest.raises(AttributeError, match="'stream_cgzsl' has no attribute 'nothing'"):
        stream_cgzsl.nothing  # noqa: B018
