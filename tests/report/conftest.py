"""A real browser for the tests that look at pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium: the one `CGZSL_CHROMIUM` names, or one that is installed. It is never downloaded."""
    program = os.environ.get("CGZSL_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        reason = "no browser: CGZSL_CHROMIUM names none, and neither chromium nor google-chrome is installed"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        yield launched
        launched.close()
