"""Prompts in a real browser: versions with statistics, and what differs between two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from kantan_agents import Agent, Prompt, TraceStore, record_traces
from kantan_agents.lab.evaluation.statistics import clopper_pearson
from kantan_agents.page import traces_app
from kantan_agents.page.data.prompt_versions import changed_lines
from kantan_agents.page.data.scores_over_time import Scored, _periods, _scores, _unit, scores_over_time
from kantan_agents.testing import ScriptedModel
from tests.page.served import served
from tests.traces.store.sample_database import open_sample

HOSTILE = '<img src=x onerror="window.hit=1">/a b'
TEXTS = {
    "v1": "Be brief.\n-- no lists\nSay goodbye.",
    "v2": "Be brief.\nSay goodbye, kindly.",
    HOSTILE: "Be <b>bold</b>.",
}


def make(path: Path) -> None:
    recorder = record_traces(path)
    for version, text in TEXTS.items():
        for name in ("team/support", HOSTILE) if version == HOSTILE else ("team/support",):
            Agent("a", Prompt(name, version, text), model=ScriptedModel(lambda _call: "done")).run("hello")
    recorder.shutdown()


@pytest.fixture(scope="module")
def address(path: Path) -> Iterator[str]:
    with served(traces_app(path)) as address:
        yield address


def test_a_prompt_leads_to_its_versions_and_their_runs(page: Page, address: str) -> None:
    page.goto(f"{address}/#/prompts")
    page.get_by_role("link", name="team/support").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("team/support")
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(4)
    expect(rows.nth(1)).to_contain_text("v1")
    page.get_by_role("link", name="v1", exact=True).click()
    expect(page).to_have_url(re.compile("#/runs\\?prompt=team%2Fsupport&version=v1"))
    expect(page.locator("table.runs tbody tr:not(.space)")).to_have_count(1)


def test_any_two_versions_are_compared_and_the_address_names_them(page: Page, address: str) -> None:
    page.goto(f"{address}/#/prompts/team%2Fsupport?old=v1&new=v2")
    changes = page.get_by_role("region", name="Changes")
    expect(changes.locator(".removed")).to_have_text([re.compile("-- no lists"), re.compile("Say goodbye.$")])
    expect(changes.locator(".added")).to_contain_text("Say goodbye, kindly.")
    page.get_by_label("To").select_option("v1")
    expect(page.get_by_text("The texts are the same.")).to_be_visible()
    page.get_by_label("From").select_option("v2")
    expect(changes.locator(".added")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"old=v2&new=v1$"))


def test_hostile_names_and_texts_are_texts(page: Page, address: str) -> None:
    page.goto(f"{address}/#/prompts")
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(page.locator("pre")).to_have_text("Be <b>bold</b>.")
    assert page.evaluate("window.hit") is None


def test_without_prompts_it_says_how_to_name_one(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database, served(traces_app(database.path)) as address:
        page.goto(f"{address}/#/prompts")
        expect(page.get_by_text("No run of this database names a prompt.")).to_be_visible()


def test_a_version_without_a_text_says_so(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        for version in ("v1", "v2"):
            database.run("hello", prompt_name="p", prompt_version=version)
        with served(traces_app(database.path)) as address:
            page.goto(f"{address}/#/prompts/p")
            expect(page.get_by_text("Its text is not recorded.")).to_be_visible()


def test_bad_names_are_explained(path: Path, page: Page, address: str) -> None:
    with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
        assert client.get("/api/prompts/versions").json()["error"]["code"] == "E75"
        assert client.get("/api/prompts/versions?name=none").json()["error"]["code"] == "E87"
        unknown = client.get("/api/prompts/diff?name=team/support&old=v1&new=v9")
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "E87")
    page.goto(f"{address}/#/prompts/none")
    expect(page.get_by_role("alert")).to_contain_text("E87")


def test_lines_that_look_like_the_names_of_files_are_lines() -> None:
    diff = "--- a\n+++ b\n@@ -1,2 +1 @@\n--- x\n++ y\n z"
    assert changed_lines(diff) == [
        {"kind": "place", "text": "@ -1,2 +1 @@"},
        {"kind": "removed", "text": "-- x"},
        {"kind": "added", "text": "+ y"},
        {"kind": "kept", "text": "z"},
    ]
    assert changed_lines("") == []


def test_scores_over_time_have_an_interval_where_there_are_enough(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        for version, scores in {"v1": [0.2, 0.4] * 4, "v2": [0.9]}.items():
            for score in scores:
                trace = database.trace(
                    None, {"prompt_name": "p", "prompt_version": version, "agent_name": "a"}
                )
                database.span(trace, "custom", name="judge", data={"rubric": {"score": score}})
        with served(traces_app(database.path)) as address:
            page.goto(f"{address}/#/prompts/p")
            expect(page.locator("svg .series circle")).to_have_count(2)
            expect(page.locator("svg .series line")).to_have_count(1)
            page.get_by_text("The same as a table").click()
            table = page.get_by_role("table", name="Scores over time")
            expect(table.get_by_role("row").nth(1)).to_contain_text("0.30")
            expect(table.get_by_role("row").nth(1)).to_contain_text(re.compile(r"0\.2\d to 0\.3\d"))
            expect(table.get_by_role("row").nth(2)).to_contain_text("too few scores")


def test_several_scores_of_a_trace_are_not_so_many() -> None:
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    traces = [f"t{number}" for number in range(10)]
    once = [Scored(start, float(trace < "t8"), trace) for trace in traces]
    (single,), (often,) = (_periods(scores, timedelta(days=1)) for scores in (once, once * 5))
    assert often["scores"] == 50
    assert (often["low"], often["high"]) == pytest.approx(clopper_pearson(8, 10))
    assert (single["low"], single["high"]) == pytest.approx((often["low"], often["high"]))
    (few,) = _periods(once[:2] * 5, timedelta(days=1))
    assert few["low"] is None


def test_scores_of_a_conversation_are_not_so_many_whichever_judge_has_given_them(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        for number in range(12):
            prompt = {
                "prompt_name": "p",
                "prompt_version": "1",
                "agent_name": "a",
                "agent_run_id": f"{number}",
            }
            answer = database.trace(None, prompt, group=f"talk {number % 2}")
            judge = {"agent_name": "judge", "agent_run_id": f"j{number}", "judged_trace_id": answer}
            for trace in (answer, database.trace(None, judge)):
                database.span(trace, "custom", name="judge", data={"rubric": {"score": number / 12}})
        store = TraceStore(database.path)
        (found,) = scores_over_time(store, "p")["versions"]
        assert {one.conversation for one in _scores(store, "p", "1")} == {"talk 0", "talk 1"}
    assert [(one["scores"], one["low"]) for one in found["periods"]] == [(24, None)]


def test_periods_are_as_short_as_the_time_allows() -> None:
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    scores = [Scored(start + timedelta(days=day), 0.5, "t") for day in range(40)]
    assert len(_periods(scores, _unit(timedelta(days=39)))) == 40
    assert _unit(timedelta(minutes=3)) == timedelta(minutes=1)
    assert _unit(timedelta(days=300)) == timedelta(weeks=1)
    assert (
        len(
            _periods(
                [Scored(start + timedelta(days=900 * one), 0.5, "t") for one in range(9)],
                _unit(timedelta(days=7200)),
            )
        )
        == 9
    )
