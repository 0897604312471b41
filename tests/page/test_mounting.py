"""The page inside a service of one's own: Starlette and FastAPI, below any path."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from kantan_agents import Agent, record_traces
from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.page import traces_app
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.schema import make_tables
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


EMPTY: dict[str, dict[str, Any]] = {
    "/api/runs": {"runs": [], "before": None},
    "/api/prompts": {"prompts": []},
    "/api/choices": {"agent": [], "prompt": [], "version": [], "tool": []},
    "/api/comparisons": {"evaluations": [], "experiments": []},
    "/api/labels": {"evaluations": []},
}


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where there is no trace database yet."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "traces.sqlite3")


def test_the_page_is_empty_until_the_service_records_its_first_run(place: str) -> None:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        recorder = record_traces(place)
        yield
        recorder.shutdown()

    mounted = traces_app(place)
    with TestClient(mounted, base_url="http://127.0.0.1") as early:
        for path, answer in EMPTY.items():
            found = early.get(path).json()
            assert {key: found[key] for key in answer} == answer
        before = early.get("/api/version").json()
    service = FastAPI(lifespan=lifespan)
    service.mount("/traces", mounted)

    @service.post("/ask")
    async def ask() -> str:
        context = await Agent("a", "b", model=ScriptedModel([[assistant_message("hi")]])).run_async("hello")
        return str(context["result"].final_output)

    with TestClient(service, base_url="http://127.0.0.1") as client:
        assert client.get("/traces/api/runs").json() == EMPTY["/api/runs"]
        assert client.post("/ask").json() == "hi"
        (row,) = client.get("/traces/api/runs").json()["runs"]
        assert (row["input"], row["output"]) == ("hello", "hi")
        assert client.get("/traces/api/version").json() != before


def test_a_database_that_was_there_and_is_gone_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
        assert client.get("/api/runs").json() == EMPTY["/api/runs"]
        make_tables(path)
        assert client.get("/api/runs").json() == EMPTY["/api/runs"]
        path.unlink()
        assert client.get("/api/runs").json()["error"]["code"] == "E60"


@pytest.mark.parametrize("name", ["missing/traces.sqlite3", "folder", "notes.txt", "other.sqlite3"])
def test_what_cannot_become_a_trace_database_is_an_error_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("These are notes." * 100)
    with closing(sqlite3.connect(tmp_path / "other.sqlite3")) as connection:
        connection.execute("CREATE TABLE customers(id)")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TraceDatabaseError):
        traces_app(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before
