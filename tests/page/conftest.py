"""A browser for the tests of this directory, and a new window for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from kantan_agents import TraceStore
from tests.page.browser import open_chromium
from tests.page.sample import make
from tests.page.served import apart

_PATIENCE = 20_000
"""Milliseconds: a busy machine takes its time."""

expect.set_options(timeout=_PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that open a browser, so that a session can leave them out."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database that the function ``make`` of the test module has written, or that of the sample."""
    written = tmp_path_factory.mktemp("page") / "traces.sqlite3"
    apart(lambda: getattr(request.module, "make", make)(written))
    return written


@pytest.fixture(scope="module")
def store(path: Path) -> TraceStore:
    return TraceStore(path)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The browser.

    It stays open until the last test of this directory. Meanwhile ``asyncio.run`` fails in this thread, in
    modules without a browser too: use ``apart`` of ``served.py``.
    """
    with open_chromium() as chromium:
        yield chromium


@pytest.fixture
def window(browser: Browser) -> Iterator[BrowserContext]:
    """A browser window of its own; a text that reached the page as a script would fail the test."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, locale="en-GB", timezone_id="Europe/Oslo"
    )
    context.set_default_timeout(_PATIENCE)
    yield context
    context.close()


@pytest.fixture
def page(window: BrowserContext) -> Iterator[Page]:
    """A page in which every error of a script, and every message of the console about one, fails the test."""
    opened = window.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))

    def note(message: ConsoleMessage) -> None:
        # Chromium reports the status of an answer that the page handles itself.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            problems.append(message.text)

    opened.on("console", note)
    yield opened
    assert problems == []
