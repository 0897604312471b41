"""One run in a real browser: its timeline, its calls, and what the rules decided."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from kantan_agents import Recording, TraceStore
from kantan_agents.page import traces_app
from tests.page.served import served
from tests.traces.store.sample_database import open_sample

HOSTILE = [
    '<img src=x onerror="window.hit=1">',
    "</script><script>window.hit=1</script>",
    "javascript:alert(1)",
]


@pytest.fixture(scope="module")
def address(store: TraceStore) -> Iterator[str]:
    with served(traces_app(store)) as address:
        yield address


@pytest.fixture
def client(store: TraceStore) -> Iterator[TestClient]:
    with TestClient(traces_app(store), base_url="http://127.0.0.1") as client:
        yield client


def test_a_refused_call_names_its_rule(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    expect(page.get_by_role("heading", level=1)).to_have_text("support")
    line = page.get_by_role("treeitem").filter(has_text="refund_order").first
    expect(line).to_contain_text("denied")
    line.click()
    details = page.get_by_role("region", name="Details")
    expect(details).to_contain_text("denied E15 by params: refund_order.order_id.pattern in explicit")
    expect(details).to_contain_text('{"order_id": "7"}')
    expect(details).to_contain_text("Tool parameter pattern mismatch")


def test_a_model_call_shows_what_was_sent_and_answered(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    page.get_by_role("treeitem").filter(has_text="model").first.click()
    details = page.get_by_role("region", name="Details")
    expect(details).to_contain_text("Help Aiko.")
    expect(details).to_contain_text("Please refund 7")
    expect(details.locator(".message.call")).to_contain_text("refund_order")
    details.get_by_text("3 tools offered").click()
    expect(details).to_contain_text("Look up an order.")
    expect(details).to_contain_text("transfer_to_billing")
    page.get_by_role("treeitem").filter(has_text="model").last.click()
    details.get_by_text("Settings").click()
    expect(details).to_contain_text("Structured output: Refund, native")


def test_the_overview_has_prompt_context_and_rules(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    page.get_by_text("Prompt, rules and metadata").click()
    expect(page.get_by_text("Help {{ $ctx.name }}.")).to_be_visible()
    expect(page.get_by_text("Values from the context")).to_be_visible()
    expect(page.locator("main")).to_contain_text("^[0-3]")


def test_a_hand_off_and_its_agent_are_lines(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    expect(page.get_by_role("treeitem").filter(has_text="support to billing")).to_be_visible()
    expect(page.get_by_role("treeitem").filter(has_text="agent billing")).to_be_visible()


def test_errors_stand_out(page: Page, store: TraceStore, address: str) -> None:
    (failed,) = store.traces(has_failed=True)
    page.goto(f"{address}/#/run/{failed.trace_id}")
    expect(page.locator(".problem").first).to_contain_text("the key has expired")
    (recovered,) = store.traces(keywords=["order 13"])
    page.goto(f"{address}/#/run/{recovered.trace_id}")
    line = page.get_by_role("treeitem").filter(has_text="look_up_order")
    expect(line).to_contain_text("error")
    line.click()
    expect(page.get_by_role("region", name="Details")).to_contain_text(
        "An error occurred while running the tool"
    )


def test_a_verdict_is_shown(page: Page, store: TraceStore, address: str) -> None:
    (judged,) = store.traces(agent="judge")
    page.goto(f"{address}/#/run/{judged.trace_id}")
    expect(page.locator(".summary")).to_contain_text("score 0.4")
    page.get_by_role("treeitem").filter(has_text="verdict").last.click()
    expect(page.get_by_role("region", name="Details")).to_contain_text("nobody says sorry")


def test_the_keyboard_moves_finds_and_leaves(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    expect(page.get_by_role("treeitem").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("treeitem").nth(1)).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("span=span_"))
    page.keyboard.press("k")
    expect(page.get_by_role("treeitem").nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("/")
    page.keyboard.type("mismatch")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Details")).to_contain_text("mismatch")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("#/runs"))


def test_a_line_can_be_folded_and_shared(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    lines = page.get_by_role("treeitem")
    expect(lines).to_have_count(8)
    lines.nth(0).get_by_label("Fold", exact=True).click()
    expect(lines).to_have_count(3)
    lines.nth(0).get_by_label("Unfold").click()
    lines.nth(2).click()
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(lines.nth(2)).to_have_attribute("aria-selected", "true")


def test_copies_are_in_the_clipboard(page: Page, store: TraceStore, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    run = store.traces(limit=1)[0].trace_id
    page.goto(f"{address}/#/run/{run}")
    page.get_by_role("button", name="Copy as recording").click()
    expect(page.locator("#status")).to_have_text("The recording is in the clipboard.")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert Recording.from_dict(copied).trace_id == run
    page.get_by_role("button", name="Copy as case").click()
    expect(page.locator("#status")).to_have_text("The case is in the clipboard.")
    case = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert case["input"] == "Please refund 7" and case["context"]["name"] == "Aiko"


def test_what_cannot_be_copied_says_why(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        run = database.run("hello")
        with served(traces_app(database.path)) as address:
            page.goto(f"{address}/#/run/{run}")
            page.get_by_role("button", name="Copy as recording").click()
            expect(page.locator("#status")).to_contain_text("E90")


def test_an_unknown_run_is_explained(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/nothing")
    expect(page.get_by_role("alert")).to_contain_text("E61")


def test_hostile_texts_are_texts(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        text = " ".join(HOSTILE)
        trace = database.trace("trace_hostile", {"agent_name": text, "prompt_name": text, "k": text})
        database.span(trace, "function", name=text, input=text, output=text, error={"message": text})
        database.span(trace, "custom", name=text, data={"data": {text: text}})
        with served(traces_app(database.path)) as address:
            page.goto(f"{address}/#/run/{trace}")
            for line in range(2):
                page.get_by_role("treeitem").nth(line).click()
                expect(page.get_by_role("region", name="Details")).to_contain_text("<img src=x")
            assert page.evaluate("window.hit") is None
            assert page.locator("main img, main script, main a[href^=javascript]").count() == 0


def test_a_span_is_shown_as_json_when_it_is_asked_for(page: Page, store: TraceStore, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/#/run/LAST")
    page.get_by_role("treeitem").filter(has_text="refund_order").first.click()
    details = page.get_by_role("region", name="Details")
    assert [url for url in asked if "/span/" in url] == []
    details.get_by_text("As JSON").click()
    expect(details).to_contain_text('"object": "trace.span"')
    spans = {span.span_id for span in store.trace("LAST").spans}
    shown = json.loads(details.locator("pre").last.inner_text())
    assert shown["span_id"] in spans and shown["span_type"] == "function"
    assert len([url for url in asked if "/span/" in url]) == 1


def test_a_narrow_window_has_no_horizontal_scrolling(page: Page, address: str) -> None:
    for width in (360, 900, 2560):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{address}/#/run/LAST")
        page.get_by_role("treeitem").nth(1).click()
        expect(page.get_by_role("region", name="Details")).to_contain_text("Instructions")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_damaged_rows_show_what_there_is(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        trace = database.trace("trace_damaged", {"agent_name": "a"})
        one, two = (database.span(trace, "function", name=name, input="in") for name in ("one", "two"))
        connection: Any = database.tracer._conn
        connection.execute("UPDATE spans SET parent_id = ? WHERE id = ?", (two, one))
        connection.execute("UPDATE spans SET parent_id = ?, raw_json = '{' WHERE id = ?", (one, two))
        connection.execute("UPDATE spans SET started_at = 'never', ended_at = NULL WHERE id = ?", (two,))
        connection.commit()
        with served(traces_app(database.path)) as address:
            page.goto(f"{address}/#/run/{trace}")
            expect(page.get_by_role("treeitem")).to_have_count(2)


@pytest.mark.slow
def test_a_run_that_goes_on_is_shown_as_it_goes_on_until_it_has_ended(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        trace = database.trace("trace_going_on", {"agent_run_id": "1", "agent_name": "a"})
        database.tool(trace, "one", parent="turn")
        with served(traces_app(database.path)) as address:
            page.goto(f"{address}/#/run/{trace}")
            status = page.locator("main .unfinished")
            expect(status).to_have_text("unfinished")
            database.tool(trace, "two", parent="turn")  # perhaps before the page has looked once
            expect(page.get_by_role("treeitem")).to_have_count(2)
            expect(status).to_have_count(1)
            database.span(trace, output="the answer")
            expect(page.locator("main .ok")).to_have_text("ok")
            expect(page.locator("main")).to_contain_text("the answer")


def test_a_very_long_text_is_sent_when_it_is_asked_for(client: TestClient, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        trace = database.run("x" * 20_000_000)
        with TestClient(traces_app(database.path), base_url="http://127.0.0.1") as client:
            data = client.get(f"/api/run/{trace}")
            assert len(data.content) < 200_000
            assert data.json()["input"]["length"] == 20_000_000
            span = TraceStore(database.path).trace(trace).spans[0].span_id
            whole = client.get(f"/api/run/{trace}/span/{span}?part=input")
            assert len(whole.text) == 20_000_000
            assert whole.headers["content-disposition"].startswith("attachment")
            assert whole.headers["content-type"].startswith("text/plain")


def test_a_span_is_given_whole(client: TestClient, store: TraceStore) -> None:
    trace = store.trace("LAST")
    found = client.get(f"/api/run/LAST/span/{trace.spans[0].span_id}").json()
    assert found["span_id"] == trace.spans[0].span_id and found["raw"]["object"] == "trace.span"
    assert client.get("/api/run/LAST/span/none").json()["error"]["code"] == "E61"
    assert client.get(f"/api/run/LAST/span/{trace.spans[0].span_id}?part=raw").status_code == 400


def test_messages_are_sent_once(client: TestClient) -> None:
    data = client.get("/api/run/LAST").json()
    first, second = data["calls"][0], data["calls"][1]
    assert second["input"][: len(first["input"])] == first["input"]
    contents = [json.dumps(one) for one in data["contents"]["messages"]]
    assert len(contents) == len(set(contents))
