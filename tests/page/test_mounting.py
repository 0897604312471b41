"""The page inside a service of one's own: Starlette and FastAPI, below any path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from kantan_agents.errors import InvalidOptionError
from kantan_agents.page import traces_app
from tests.page.served import served
from tests.traces.store.sample_database import open_sample


def starlette(page: Any) -> Any:
    return Starlette(routes=[Mount("/ops/traces", page)])


def fastapi(page: Any) -> Any:
    app = FastAPI()
    app.mount("/ops/traces", page)
    return app


@pytest.mark.parametrize("service", [starlette, fastapi])
@pytest.mark.parametrize("slash", ["", "/"])
def test_it_works_below_a_path(tmp_path: Path, page: Page, service: Any, slash: str) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.run("hello")
        with served(service(traces_app(database.path))) as address:
            page.goto(f"{address}/ops/traces{slash}")
            page.locator("table.runs tbody a").first.click()
            expect(page.get_by_role("treeitem")).to_have_count(1)
            page.get_by_role("link", name="Label").click()
            expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_two_databases_have_a_page_each(tmp_path: Path, page: Page) -> None:
    with open_sample(tmp_path / "a.db") as one, open_sample(tmp_path / "b.db") as other:
        one.run("in the one")
        other.run("in the other")
        service = Starlette(
            routes=[Mount("/a", traces_app(one.path)), Mount("/b", traces_app(str(other.path)))]
        )
        with served(service) as address:
            page.goto(f"{address}/a/")
            expect(page.locator("table.runs")).to_contain_text("in the one")
            page.goto(f"{address}/b/")
            expect(page.locator("table.runs")).to_contain_text("in the other")


def test_what_is_no_function_cannot_authorize(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database, pytest.raises(InvalidOptionError, match="authorize"):
        traces_app(database.path, authorize=True)  # type: ignore[arg-type]
