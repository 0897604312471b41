"""The frame around all views."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from kantan_agents.page import traces_app
from tests.page.served import served
from tests.traces.store.sample_database import open_sample


def test_every_view_opens_from_the_frame(tmp_path: Path, page: Page) -> None:
    with open_sample(tmp_path / "traces.sqlite3") as database:
        database.run("hello", prompt_name="p")
        with served(traces_app(database.path)) as address:
            page.goto(address)
            for view in ("Prompts", "Comparisons", "Label", "Runs"):
                link = page.get_by_role("navigation").get_by_role("link", name=view)
                link.click()
                expect(page.get_by_role("heading", level=1)).to_have_text(view)
                expect(link).to_have_attribute("aria-current", "page")
                expect(page.locator("[aria-current]")).to_have_count(1)


def test_an_unknown_view_leads_back_to_the_runs(tmp_path: Path, page: Page) -> None:
    with open_sample(tmp_path / "traces.sqlite3") as database, served(traces_app(database.path)) as address:
        page.goto(f"{address}/#/nothing")
        expect(page.get_by_text("There is no such view.")).to_be_visible()
        page.goto(f"{address}/#/constructor")
        page.get_by_role("link", name="To the runs").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
