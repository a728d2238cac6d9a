"""Data is never executed: the source of the whole repository is searched for calls that could."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = ("schemas", "stream_cgzsl", "workers", "benchmarks", "deploy")

MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "pickletools"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {
    "torch.load": "unpickles",
    "torch.jit.load": "runs what it loads",
    "yaml.load": "makes objects",
    "yaml.unsafe_load": "makes objects",
    "yaml.full_load": "makes objects",
    "pandas.read_pickle": "unpickles",
    "os.system": "goes through a shell",
    "os.popen": "goes through a shell",
    "subprocess.getoutput": "goes through a shell",
}
NUMPY_LOADS = {"numpy.load", "numpy.lib.format.read_array", "numpy.lib.format.open_memmap"}


def problems(source: str) -> list[str]:
    """The calls and imports of a module that could execute data."""
    tree = ast.parse(source)
    names = dict(_imported(tree))
    return [f"line {node.lineno}: {what}" for node in ast.walk(tree) for what in _wrong(node, names)]


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Local names and the full names they stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    (alias.asname or alias.name.split(".")[0]),
                    (alias.name if alias.asname else alias.name.split(".")[0]),
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name), f"{node.module}.{alias.name}"


def _wrong(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (f"imports {alias.name}" for alias in node.names if alias.name.split(".")[0] in MODULES)
    elif isinstance(node, ast.ImportFrom):
        if (node.module or "").split(".")[0] in MODULES:
            yield f"imports {node.module}"
    elif isinstance(node, ast.Call):
        name = _name(node.func, names)
        given = {word.arg: word.value for word in node.keywords}
        if name in BUILTINS:
            yield f"{name} runs text"
        if name in CALLS:
            yield f"{name} {CALLS[name]}"
        if name in NUMPY_LOADS and not _is(given.get("allow_pickle"), False):
            yield f"{name} without allow_pickle=False"
        if name == "ctypes.CDLL" and not (node.args and _is(node.args[0], None)):
            yield f"{name} loads machine code"  # but for None, which is this process itself
        if "shell" in given and not _is(given["shell"], False):
            yield f"{name} goes through a shell"


def _name(function: ast.expr, names: dict[str, str]) -> str:
    if isinstance(function, ast.Attribute):
        return f"{_name(function.value, names)}.{function.attr}"
    return names.get(function.id, function.id) if isinstance(function, ast.Name) else "?"


def _is(value: ast.expr | None, constant: object) -> bool:
    return isinstance(value, ast.Constant) and value.value is constant


def modules() -> list[Path]:
    return sorted(path for tree in TREES for path in (ROOT / tree).rglob("*.py"))


def test_no_module_can_execute_data() -> None:
    assert len(modules()) > 100
    found = {str(path.relative_to(ROOT)): problems(path.read_text()) for path in modules()}
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from joblib import load",
        "import torch\ntorch.load(f)",
        "from torch import load as l\nl(f)",
        "import numpy as np\nnp.load(f)",
        "import numpy as np\nnp.load(f, allow_pickle=True)",
        "import numpy as np\nnp.load(f, allow_pickle=flag)",
        "import yaml\nyaml.load(f, yaml.Loader)",
        "eval(text)",
        "__import__(text)",
        "import subprocess as s\ns.run(text, shell=True)",
        "import os\nos.system(text)",
        "import ctypes\nctypes.CDLL(path)",
    ],
)
def test_the_search_finds_what_executes_data(source: str) -> None:
    assert problems(source)


@pytest.mark.parametrize(
    "source",
    ["import numpy as np\nnp.load(f, allow_pickle=False)", "model.eval()", "import re\nre.compile(x)", "y.load(f)"],
)
def test_the_search_accepts_harmless_code(source: str) -> None:
    assert problems(source) == []
