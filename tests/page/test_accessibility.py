"""Every view can be used by keyboard and screen reader, in both colour schemes and on two widths."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from kantan_agents import TraceStore
from kantan_agents.page import traces_app
from kantan_agents.page.data.read_run import read_run
from kantan_agents.page.report import write_run_report
from tests.page.axe import axe_script, violations, violations_of_all_looks
from tests.page.served import served
from tests.page.settled import Settling


@pytest.fixture(scope="module")
def script(pytestconfig: pytest.Config) -> str:
    return axe_script(Path(str(pytestconfig.cache.mkdir("axe"))))


@pytest.fixture(scope="module")
def address(store: TraceStore) -> Iterator[str]:
    with served(traces_app(store)) as address:
        yield address


@contextmanager
def opened(browser: Browser) -> Iterator[Page]:
    # The policy of the page would not let axe run either.
    context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    "view",
    [
        "runs",
        "runs?words=nothing",
        "run/LAST",
        "run/none",
        "prompts",
        "prompts/help",
        "diff/LAST/LAST",
        "comparisons",
        "label",
    ],
)
def test_axe_finds_nothing(browser: Browser, address: str, script: str, view: str) -> None:
    with opened(browser) as page:
        settling = Settling(page)
        page.goto(f"{address}/#/{view}")
        settling.wait()
        if view == "run/LAST":
            page.get_by_role("treeitem").nth(2).click()
        assert violations_of_all_looks(page, script) == {}


def test_axe_finds_nothing_in_a_report(
    browser: Browser, store: TraceStore, script: str, tmp_path: Path
) -> None:
    write_run_report([read_run(store, "LAST")], tmp_path / "run.html")
    with opened(browser) as page:
        page.goto((tmp_path / "run.html").as_uri())
        page.get_by_role("treeitem").nth(2).click()
        assert violations_of_all_looks(page, script) == {}


def test_axe_finds_what_is_wrong(browser: Browser, address: str, script: str) -> None:
    with opened(browser) as page:
        page.goto(address)
        page.evaluate("document.querySelector('main').append(document.createElement('button'))")
        assert any("button-name" in one for one in violations(page, script))


def test_axe_finds_what_is_wrong_in_one_look_only(browser: Browser, script: str) -> None:
    with opened(browser) as page:
        page.set_content(
            """<!DOCTYPE html><html lang="en"><title>t</title><main><h1>one</h1><p>two</p></main><style>
            @media (prefers-color-scheme: dark) and (width < 400px) { p { color: #bbb; background: #ccc } }
            </style></html>"""
        )
        found = violations_of_all_looks(page, script)
    assert list(found) == ["dark, 390 wide"]
    assert "color-contrast" in found["dark, 390 wide"][0]
