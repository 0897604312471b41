"""The labelling queue can be used by keyboard and screen reader, before an answer and after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import agents
import pytest
from playwright.sync_api import Browser, expect

from kantan_agents.page import traces_app
from tests.lab.evaluation.labels.shop import evaluate_shop
from tests.page.axe import axe_script, violations_of_all_looks
from tests.page.served import apart, served


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("labels") / "traces.sqlite3"
    agents.set_trace_processors([])
    apart(lambda: evaluate_shop(path, 2, context={"customer": "Aiko"}, expected="right"))
    with served(traces_app(path)) as address:
        yield address


def test_axe_finds_nothing_in_the_queue(browser: Browser, address: str, pytestconfig: pytest.Config) -> None:
    script = axe_script(Path(str(pytestconfig.cache.mkdir("axe"))))
    window = browser.new_context(bypass_csp=True)
    page = window.new_page()
    page.goto(f"{address}/#/label")
    page.get_by_label("Your name").fill("Aiko")
    assert violations_of_all_looks(page, script) == {}
    page.get_by_label("Metric").fill("helpful")
    page.get_by_label("Scale").select_option("1-5")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("0 of 4 labelled")).to_be_visible()
    assert violations_of_all_looks(page, script) == {}
    page.keyboard.press("4")
    expect(page.get_by_text("judge:")).to_be_visible()
    assert violations_of_all_looks(page, script) == {}
    page.get_by_role("button", name="Next").click()
    for number in range(1, 4):
        expect(page.locator(".label-item")).to_have_attribute("aria-busy", "false")
        page.keyboard.press("s")
        expect(page.get_by_text(f"1 of 4 labelled, {number} skipped")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Done")
    assert violations_of_all_looks(page, script) == {}
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        # Nothing is wider than the window.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    window.close()
