"""Every view can be used by keyboard and screen reader, in both colour schemes and on two widths."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from kantan_agents.page import traces_app
from kantan_agents.page.data.read_run import read_run
from kantan_agents.page.report import write_run_report
from kantan_agents.tracing.store import TraceStore
from tests.page.axe import axe_script, violations
from tests.page.sample import make
from tests.page.served import apart, served


@pytest.fixture(scope="module")
def script(pytestconfig: pytest.Config) -> str:
    return axe_script(Path(str(pytestconfig.cache.mkdir("axe"))))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    path = tmp_path_factory.mktemp("accessible") / "traces.sqlite3"
    apart(lambda: make(path))
    return TraceStore(path)


@pytest.fixture(scope="module")
def address(store: TraceStore) -> Iterator[str]:
    with served(traces_app(store)) as address:
        yield address


@contextmanager
def opened(browser: Browser, scheme: Literal["light", "dark"], width: int) -> Iterator[Page]:
    # The policy of the page would not let axe run either.
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
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
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    browser: Browser, address: str, script: str, scheme: Literal["light", "dark"], width: int, view: str
) -> None:
    with opened(browser, scheme, width) as page:
        page.goto(f"{address}/#/{view}")
        page.wait_for_load_state("networkidle")
        if view == "run/LAST":
            page.get_by_role("treeitem").nth(2).click()
        assert violations(page, script) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_report(
    browser: Browser, store: TraceStore, script: str, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    write_run_report([read_run(store, "LAST")], tmp_path / "run.html")
    with opened(browser, scheme, 1280) as page:
        page.goto((tmp_path / "run.html").as_uri())
        page.get_by_role("treeitem").nth(2).click()
        assert violations(page, script) == []


def test_axe_finds_what_is_wrong(browser: Browser, address: str, script: str) -> None:
    with opened(browser, "light", 1280) as page:
        page.goto(address)
        page.evaluate("document.querySelector('main').append(document.createElement('button'))")
        assert any("button-name" in one for one in violations(page, script))
