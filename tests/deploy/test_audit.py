"""The audit of our dependencies never reports success if it could not look anything up."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def audit() -> Any:
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOUND = {"name": "numpy", "version": "2.0", "vulns": []}
SKIPPED = {"name": "torch", "skip_reason": "Dependency not found on PyPI"}
VULNERABLE = {
    "name": "urllib3",
    "version": "1.0",
    "vulns": [
        {"id": "PYSEC-1", "aliases": ["CVE-2020-1"], "fix_versions": ["1.1"]},
        {"id": "GHSA-2", "fix_versions": []},
    ],
}


@pytest.mark.parametrize(
    ("document", "why_not", "code", "said"),
    [
        ({"dependencies": [SOUND]}, "", 0, ["audit: 0 known vulnerabilities in 1 packages, by the advisories of pypi"]),
        (
            {"dependencies": [SOUND, VULNERABLE]},
            "",
            1,
            [
                "audit: VULNERABLE urllib3 1.0: PYSEC-1 (CVE-2020-1), fixed in 1.1",
                "audit: VULNERABLE urllib3 1.0: GHSA-2, fixed in no version yet",
                "audit: 2 known vulnerabilities in 2 packages, by the advisories of pypi",
            ],
        ),
        (
            {"dependencies": [SOUND, SKIPPED]},
            "",
            0,
            [
                "audit: not looked up: torch: Dependency not found on PyPI",
                "audit: 0 known vulnerabilities in 1 packages, by the advisories of pypi",
            ],
        ),
        (
            {"dependencies": [SKIPPED]},
            "",
            2,
            ["audit: NOT DONE, the advisories of pypi could not be had: Dependency not found on PyPI"],
        ),
        ({}, "no network", 2, ["audit: NOT DONE, the advisories of pypi could not be had: no network"]),
        (
            {"dependencies": []},
            "",
            2,
            ["audit: NOT DONE, the advisories of pypi could not be had: nothing is installed here"],
        ),
    ],
    ids=["sound", "vulnerable", "some skipped", "all skipped", "no answer", "nothing installed"],
)
def test_its_output(audit: Any, document: dict[str, Any], why_not: str, code: int, said: list[str]) -> None:
    assert audit.told(document, why_not, "pypi") == (said, code)


def test_the_build_continues_whatever_the_audit_finds() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    [audit_line] = [line for line in lines if line.startswith("make audit")]
    assert " || " in audit_line
    assert lines.index("make test") < lines.index(audit_line)
