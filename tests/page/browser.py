"""A real Chromium for tests: Playwright drives the one that is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

# The headless shell is the same engine without the browser around it, and takes a third of the processor.
_NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
_MISSING: Final = (
    "NOT TESTED: there is no Chromium here. Install Debian's package `chromium-headless-shell` or "
    "`chromium`; without it, nothing that a reader sees of the page is tested."
)


def installed_chromium() -> str | None:
    """Return the path of the installed Chromium."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Start Chromium without a screen; skip the test if none is installed, but fail in CI."""
    path = installed_chromium()
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(_MISSING)
    with sync_playwright() as playwright:
        # As root, and in most containers, Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
