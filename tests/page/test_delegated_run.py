"""A run inside another one, in a real browser: below the call that has delegated it, with its own calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from kantan_agents import Agent, AgentDefinition, Prompt, TraceStore, record_traces, task_tool
from kantan_agents.page import traces_app
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.page.served import apart, served

CITIES = "You know cities."


def read_map(city: str) -> str:
    """Read a map."""
    return f"{city} is in the north"


def answer(request: Any) -> Any:
    is_inner, last = request.system_instructions == CITIES, request.input[-1]
    if last.get("type") == "function_call_output":
        return "Oslo is in the north." if is_inner else "The guide says: in the north."
    if is_inner:
        return ScriptedToolCall("read_map", {"city": "Oslo"})
    task = {"subagent_type": "guide", "description": "find Oslo", "prompt": "Where is Oslo?"}
    return ScriptedToolCall("Task", task)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    path = tmp_path_factory.mktemp("delegated") / "traces.sqlite3"

    def record() -> None:
        recorder = record_traces(path)
        with OfflineServer(answer) as server:
            guide = AgentDefinition("guide", "knows cities", CITIES, tools=["read_map"])
            tools = [task_tool([guide]), read_map]
            boss = Agent("boss", Prompt("lead", "v1", "You lead."), model=server.bundle("gpt"), tools=tools)
            context = boss.run("Where is Oslo?")
        assert context["result"].final_output == "The guide says: in the north."
        recorder.shutdown()

    apart(record)
    return TraceStore(path)


@pytest.fixture(scope="module")
def address(store: TraceStore) -> Iterator[str]:
    with served(traces_app(store)) as address:
        yield address


def level(page: Page, text: str, place: int = 0) -> int:
    line = page.get_by_role("treeitem").filter(has_text=text).nth(place)
    expect(line).to_be_visible()
    return int(line.get_attribute("aria-level") or 0)


def test_it_is_below_the_call_that_has_delegated_it(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    expect(page.get_by_role("heading", level=1)).to_have_text("boss")
    order = page.get_by_role("treeitem").all_inner_texts()
    places = [
        next(place for place, text in enumerate(order) if wanted in text)
        for wanted in ("boss", "Task", "guide", "read_map")
    ]
    assert places == sorted(places)
    levels = [level(page, wanted) for wanted in ("agent boss", "Task", "agent guide", "read_map")]
    assert levels == sorted(set(levels)), levels


def test_its_calls_show_instructions_and_decisions(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    details = page.get_by_role("region", name="Details")
    page.get_by_role("treeitem").filter(has_text="read_map").click()
    expect(details).to_contain_text('{"city": "Oslo"}')
    expect(details).to_contain_text("guide")
    expect(details).to_contain_text("allowed")
    models = page.get_by_role("treeitem").filter(has_text="model")
    expect(models).to_have_count(4)
    models.nth(1).click()
    expect(details).to_contain_text(CITIES)
    expect(details).to_contain_text("Where is Oslo?")


def test_the_overview_has_both_runs(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    page.get_by_text("Prompt, rules and metadata").click()
    cards = page.locator("div.card").filter(has=page.get_by_role("heading", level=3))
    expect(cards.filter(has_text="You lead.")).to_have_count(1)
    expect(cards.filter(has_text=CITIES)).to_have_count(1)


def test_a_line_folds_what_is_inside(page: Page, address: str) -> None:
    page.goto(f"{address}/#/run/LAST")
    inner = page.get_by_role("treeitem").filter(has_text="read_map")
    expect(inner).to_be_visible()
    page.get_by_role("treeitem").filter(has_text="Task").first.click()
    page.keyboard.press("Shift+ArrowLeft")  # selects a text
    expect(inner).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(inner).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(inner).to_be_visible()
