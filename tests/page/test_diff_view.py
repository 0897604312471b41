"""Two runs side by side in a real browser: where they part, and what each did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from kantan_agents import Agent, Prompt, TraceStore, record_traces
from kantan_agents.lab import Change, Cohort, replay_cohort
from kantan_agents.page import traces_app
from kantan_agents.testing import RecordedCall, ScriptedModel, ScriptedToolCall
from tests.page.served import served
from tests.traces.store.sample_database import open_sample

V1 = Prompt("p", "v1", "Be brief.")
V2 = Prompt("p", "v2", "Be brief, and <b>kind</b>.")


def look_up(order: str) -> str:
    """Look an order up."""
    return f"{order}: late"


def agent(prompt: Prompt, *, looks_up: bool = True) -> Agent[None]:
    def answer(call: RecordedCall) -> ScriptedToolCall | str:
        is_first = isinstance(call.input, str) or len(call.input) == 1
        if is_first and looks_up:
            return ScriptedToolCall("look_up", {"order": "7"})
        return "Sorry, it is late." if "kind" in str(call.system_instructions) else "It is late."

    return Agent("a", prompt, model=ScriptedModel(answer), tools=[look_up])


def make(path: Path) -> None:
    recorder = record_traces(path)
    for prompt in (V1, V1):
        agent(prompt).run("Where is it?")
    agent(V2, looks_up=False).run("Where is it?")
    cohort = Cohort.select(TraceStore(path), version="v1", limit=1)
    replay_cohort(cohort, agent(V1), Change.prompt(V2), name="kind")
    recorder.shutdown()


@pytest.fixture(scope="module")
def address(store: TraceStore) -> Iterator[str]:
    with served(traces_app(store)) as address:
        yield address


@pytest.fixture(scope="module")
def runs(store: TraceStore) -> list[str]:
    """The ids of the runs in the order in which they were recorded; the last one is the replay."""
    return [trace.trace_id for trace in reversed(store.traces())]


def test_it_shows_where_two_runs_part(page: Page, address: str, runs: list[str]) -> None:
    page.goto(f"{address}/#/diff/{runs[0]}/{runs[2]}")
    expect(page.get_by_text("They part at the request of model call 1")).to_be_visible()
    expect(page.locator(".diff .added").first).to_contain_text("Be brief, and <b>kind</b>.")
    steps = page.locator(".steps > .step.differs")
    expect(steps.first).to_contain_text("instructions")
    expect(steps.first).to_be_in_viewport()
    expect(page.locator(".steps")).to_contain_text("No such step.")
    assert page.locator("main b").count() == 0


def test_the_keys_go_from_difference_to_difference(page: Page, address: str, runs: list[str]) -> None:
    page.goto(f"{address}/#/diff/{runs[0]}/{runs[2]}")
    steps = page.locator(".steps > .step.differs")
    expect(steps.first).to_be_visible()
    page.keyboard.press("n")
    expect(steps.nth(0)).to_be_focused()
    page.keyboard.press("n")
    expect(steps.nth(1)).to_be_focused()
    page.keyboard.press("p")
    expect(steps.nth(0)).to_be_focused()


def test_equal_steps_are_folded_and_sides_are_swapped(page: Page, address: str, runs: list[str]) -> None:
    page.goto(f"{address}/#/diff/{runs[0]}/{runs[1]}")
    expect(page.get_by_text("Both runs did the same.")).to_be_visible()
    page.get_by_text("6 equal steps").click()
    expect(page.get_by_text("7: late").first).to_be_visible()
    page.get_by_role("link", name="Swap the sides").click()
    expect(page).to_have_url(re.compile(f"{runs[1]}/{runs[0]}$"))


def test_a_replay_leads_to_the_recorded_run_beside_it(page: Page, address: str, runs: list[str]) -> None:
    page.goto(f"{address}/#/run/{runs[-1]}")
    page.get_by_role("link", name="Beside the recorded run").click()
    expect(page.get_by_role("heading", name="A: a")).to_be_visible()
    expect(page.locator(".steps > .step.differs").first).to_contain_text("instructions")


def test_any_run_can_be_compared_with_another(page: Page, address: str, runs: list[str]) -> None:
    page.goto(f"{address}/#/run/{runs[0]}")
    expect(page.get_by_role("link", name="Beside the recorded run")).to_have_count(0)
    page.get_by_label("Id of another run").fill(runs[1])
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Both runs did the same.")).to_be_visible()


def test_an_unknown_run_is_explained(page: Page, address: str, runs: list[str]) -> None:
    page.goto(f"{address}/#/diff/{runs[0]}/none")
    expect(page.get_by_role("alert")).to_contain_text("E61")


def test_runs_without_records_show_input_and_output(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        one, other = database.run("hello", "yes"), database.run("hello", "no")
        with served(traces_app(database.path)) as address:
            page.goto(f"{address}/#/diff/{one}/{other}")
            expect(page.get_by_text("1 of 2 steps differ.")).to_be_visible()
            expect(page.get_by_text("Not recorded completely").first).to_be_visible()


def test_steps_of_one_kind_are_beside_each_other(store: TraceStore, runs: list[str]) -> None:
    with TestClient(traces_app(store), base_url="http://127.0.0.1") as client:
        data = client.get(f"/api/diff/{runs[0]}/{runs[2]}").json()
    steps = [
        (step["name"], step["is_same"], [text is not None for text in step["texts"]])
        for step in data["steps"]
    ]
    assert ("input", True, [True, True]) in steps
    assert ("tool look_up", False, [True, False]) in steps
    assert ("output", False, [True, True]) in steps
    assert data["first"] == next(place for place, step in enumerate(steps) if not step[1])
