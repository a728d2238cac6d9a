"""What CUDA needs for deterministic matrix products is set before it is first used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
from stream_cgzsl.runtime.environment import prepare_torch
prepare_torch(1)
import os, torch
assert not torch.cuda.is_initialized()
print(os.environ["CUBLAS_WORKSPACE_CONFIG"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("given", "expected"), [(None, ":4096:8"), (":16:8", ":16:8")], ids=["not set", "set"])
def test_the_workspace_of_cublas_is_configured_unless_it_is_already(given: str | None, expected: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "CUBLAS_WORKSPACE_CONFIG"}
    if given is not None:
        environ["CUBLAS_WORKSPACE_CONFIG"] = given
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (expected, 0), done.stderr
