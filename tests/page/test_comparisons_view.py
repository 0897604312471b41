"""Evaluations and replays in a real browser: verdicts, a chart, and the two runs behind every case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from kantan_agents import Agent, Prompt, TraceStore, record_traces
from kantan_agents.lab import Case, Change, Cohort, Dataset, FinishedCase, evaluate, evaluator, replay_cohort
from kantan_agents.page import traces_app
from kantan_agents.testing import RecordedCall, ScriptedModel
from tests.page.served import served
from tests.traces.store.sample_database import open_sample

HOSTILE = '<img src=x onerror="window.hit=1">'


@evaluator
def kind(finished: FinishedCase) -> float:
    """Whether it says sorry; the first case never does."""
    return float("Sorry" in finished.text)


def agent(version: str) -> Agent[None]:
    def answer(call: RecordedCall) -> str:
        is_kind = "kind" in str(call.system_instructions) and "case 0" not in str(call.input)
        return "Sorry, it is late." if is_kind else "It is late."

    text = "Be kind." if version == "v2" else "Be brief."
    return Agent("a", Prompt("p", version, text), model=ScriptedModel(answer))


def make(path: Path) -> None:
    recorder = record_traces(path)
    store = TraceStore(path)
    cases = [Case(f"case {number}", id=HOSTILE if number == 1 else f"c{number}") for number in range(12)]
    variants = {version: agent(version) for version in ("v1", "v2")}
    evaluate(variants, Dataset("d", cases), kind, name=f"e {HOSTILE}", store=store)
    evaluate({"v1": agent("v1")}, Dataset("d", cases[:2]), kind, name="one variant", store=store)
    evaluate({**variants, "v3": agent("v3")}, Dataset("d", cases), kind, name="three", store=store)
    agent("v1").run("Where is it?")
    cohort = Cohort.select(store, version="v1", limit=1)
    replay_cohort(cohort, agent("v1"), Change.prompt(Prompt("p", "v2", "Be kind.")), name="kinder")
    recorder.shutdown()


@pytest.fixture(scope="module")
def address(path: Path) -> Iterator[str]:
    with served(traces_app(path)) as address:
        yield address


def test_an_evaluation_leads_to_its_verdicts(page: Page, address: str) -> None:
    page.goto(f"{address}/#/comparisons")
    page.get_by_role("link", name=f"e {HOSTILE}").click()
    expect(page.locator(".verdicts li").first).to_contain_text("v2 better on kind by 0.92")
    row = page.get_by_role("table", name="Metrics").get_by_role("row").filter(has_text="kind")
    expect(row).to_contain_text("11 / 1 / 0")
    assert page.evaluate("window.hit") is None


def test_several_variants_have_one_correction(page: Page, address: str) -> None:
    page.goto(f"{address}/#/comparisons/evaluation?name=three&b=v2")
    expect(page.locator("p.note").first).to_contain_text("adjusted for all 3 tests together")
    everyone = page.get_by_role("table", name="All compared with v1")
    expect(everyone.get_by_role("row").filter(has_text="v2").first).to_contain_text("better")
    everyone.get_by_role("row").filter(has_text="v3").filter(has_text="kind").get_by_role("link").click()
    expect(page).to_have_url(re.compile("b=v3"))


def test_a_dot_and_a_case_open_both_runs(page: Page, address: str) -> None:
    page.goto(f"{address}/#/comparisons/evaluation?name=e {HOSTILE}&metric=kind")
    pairs = page.locator("svg.paired .pair")
    expect(pairs).to_have_count(12)
    expect(page.locator("svg.paired .win")).to_have_count(11)
    pairs.first.click()
    expect(page).to_have_url(re.compile("#/diff/trace_.*/trace_"))
    expect(page.locator(".steps")).to_contain_text("Sorry, it is late.")
    page.go_back()
    page.get_by_role("link", name=HOSTILE, exact=True).click()
    expect(page.locator(".steps")).to_contain_text("Sorry, it is late.")


def test_another_metric_can_be_chosen(page: Page, address: str) -> None:
    page.goto(f"{address}/#/comparisons/evaluation?name=e {HOSTILE}")
    page.get_by_role("link", name="latency").click()
    expect(page.get_by_role("heading", name="Cases: latency")).to_be_visible()


def test_a_replay_shows_what_became_of_each_run(page: Page, address: str) -> None:
    page.goto(f"{address}/#/comparisons")
    page.get_by_role("link", name="kinder").click()
    expect(page.get_by_text("1 wording")).to_be_visible()
    page.get_by_role("table", name="Runs").get_by_role("link", name="wording").click()
    expect(page.locator(".steps > .step.differs").first).to_contain_text("instructions")


def test_outcomes_can_be_chosen(page: Page, address: str) -> None:
    page.goto(f"{address}/#/comparisons/experiment?name=kinder&status=failed")
    expect(page.get_by_role("table", name="Runs").get_by_role("row")).to_have_count(1)
    page.get_by_role("link", name="all 1").click()
    expect(page.get_by_role("table", name="Runs").get_by_role("row")).to_have_count(2)


def test_an_empty_database_says_how_to_make_one(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database, served(traces_app(database.path)) as address:
        page.goto(f"{address}/#/comparisons")
        expect(page.get_by_text("kantan-agents eval run")).to_be_visible()
        expect(page.get_by_text("kantan-agents replay cohort")).to_be_visible()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("evaluation", "E75"),
        ("evaluation?name=none", "E104"),
        ("evaluation?name=one variant", "E75"),
        (f"evaluation?name=e {HOSTILE}&a=v1&b=v9", "E104"),
        (f"evaluation?name=e {HOSTILE}&a=v1&b=v1", "E75"),
        ("experiment", "E75"),
        ("experiment?name=none", "E75"),
    ],
)
def test_what_cannot_be_compared_is_explained(path: Path, query: str, code: str) -> None:
    with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
        answer = client.get(f"/api/comparisons/{query}")
    assert answer.status_code in {400, 404}
    assert answer.json()["error"]["code"] == code


def test_the_other_way_round_every_sign_turns(path: Path) -> None:
    with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
        one, other = (
            client.get("/api/comparisons/evaluation", params={"name": f"e {HOSTILE}", "a": a, "b": b}).json()
            for a, b in (("v1", "v2"), ("v2", "v1"))
        )
    first, second = one["metrics"][0], other["metrics"][0]
    assert first["metric"] == second["metric"] == "kind"
    assert first["difference"] == -second["difference"] and first["wins"] == second["losses"]
