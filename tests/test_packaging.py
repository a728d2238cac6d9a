"""The wheel: one complete top-level package, with the two folders of the repository root inside it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """Built from a copy: building leaves files behind."""
    directory = tmp_path_factory.mktemp("wheel")
    hidden = ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "tests", "benchmarks")
    copytree(ROOT, directory / "source", symlinks=True, ignore=hidden)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", directory, directory / "source"], check=True, capture_output=True)
    (built,) = directory.glob("*.whl")
    with ZipFile(built) as opened:
        yield opened


def test_every_module_is_in_the_wheel(wheel: ZipFile) -> None:
    packed = {name for name in wheel.namelist() if name.endswith(".py")}
    folders = {"stream_cgzsl": ROOT / "stream_cgzsl", "stream_cgzsl/schemas": ROOT / "schemas"}
    folders["stream_cgzsl/workers"] = ROOT / "workers"
    expected = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in folders.items()
        for path in folder.rglob("*.py")
    }
    assert packed == expected


def test_nothing_else_is_installed_at_the_top(wheel: ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"stream_cgzsl"}


def test_the_schemas_and_the_type_marker_are_in_the_wheel(wheel: ZipFile) -> None:
    names = set(wheel.namelist())
    schemas = {f"stream_cgzsl/schemas/json/{path.name}" for path in (ROOT / "schemas" / "json").glob("*.json")}
    assert schemas
    assert schemas | {"stream_cgzsl/py.typed", "stream_cgzsl/schemas/asyncapi.json"} <= names


def test_the_figures_of_the_paper_are_in_the_wheel(wheel: ZipFile) -> None:
    assert "stream_cgzsl/benchmark/paper.json" in wheel.namelist()


def test_the_styles_and_scripts_of_reports_are_in_the_wheel(wheel: ZipFile) -> None:
    report = ROOT / "stream_cgzsl" / "report"
    pages = {path.relative_to(ROOT).as_posix() for kind in ("css", "js") for path in report.rglob(f"*.{kind}")}
    assert len(pages) == 5
    assert pages <= set(wheel.namelist())


def test_the_command_is_installed(wheel: ZipFile) -> None:
    (entry,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "stream-cgzsl = stream_cgzsl.cli:main" in wheel.read(entry).decode()
