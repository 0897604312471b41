"""What runs have cost, with the prices that the reader gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient
from typer.testing import CliRunner

from kantan_agents import Agent, TraceStore, record_traces
from kantan_agents.cli.app import app
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.page import traces_app
from kantan_agents.page.data.read_run import cost_of, read_run
from kantan_agents.testing import OfflineServer, Profile, ScriptedToolCall
from tests.page.served import apart, served
from tests.traces.store.sample_database import open_sample

PRICES = {"gpt": (2_000.0, 10_000.0)}


def run_data(store: TraceStore, prices: dict[str, tuple[float, float]] | None, trace: str = "LAST") -> Any:
    with TestClient(traces_app(store, prices=prices), base_url="http://127.0.0.1") as client:
        return client.get(f"/api/run/{trace}").json()


def test_the_cost_is_that_of_the_tokens(store: TraceStore) -> None:
    data = run_data(store, PRICES)
    costs = [call["cost"] for call in data["calls"]]
    assert costs == [
        (call["usage"]["input_tokens"] * 2_000 + call["usage"]["output_tokens"] * 10_000) / 1_000_000
        for call in data["calls"]
    ]
    assert len(costs) == 3 and min(costs) > 0
    assert data["cost"] == pytest.approx(sum(costs))


@pytest.mark.parametrize("prices", [None, {}, {"another": (1.0, 1.0)}])
def test_without_a_price_no_cost_is_claimed(store: TraceStore, prices: Any) -> None:
    data = run_data(store, prices)
    assert data["tokens"] > 0
    assert (data["cost"], [call["cost"] for call in data["calls"]]) == (None, [None] * 3)


def test_a_call_of_unknown_usage_makes_the_cost_unknown(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"

    def record() -> None:
        recorder = record_traces(path)
        hand_over = ScriptedToolCall("transfer_to_silent", {})
        silence = Profile("silent", usage="never")
        with OfflineServer([hand_over]) as one, OfflineServer(["Here."], profile=silence) as other:
            silent = Agent("silent", "b", model=other.bundle("gpt", api="chat"))
            Agent("a", "b", model=one.bundle("gpt"), handoffs=[silent]).run("Where is order 1")
        recorder.shutdown()

    apart(record)
    data = read_run(TraceStore(path), "LAST", Prices.of(PRICES))
    assert [call["cost"] is None for call in data["calls"]] == [False, True]
    assert data["cost"] is None


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        ({"openai/gpt": (1.0, 1.0), "azure/gpt": (5.0, 5.0)}, 1.0),
        ({"azure/gpt": (5.0, 5.0)}, 5.0),
        ({"gemini/gpt": (1.0, 1.0), "azure/gpt": (5.0, 5.0)}, None),
        ({"gpt": (2.0, 2.0), "openai/gpt": (1.0, 1.0)}, 1.0),
    ],
)
def test_the_price_of_the_provider_wins(prices: Any, cost: float | None) -> None:
    assert Prices.of(prices).cost("gpt", 1_000_000, 0, provider="openai") == cost


@pytest.mark.parametrize("damaged", [float("inf"), float("nan"), "many", None, -3])
def test_a_damaged_number_of_tokens_is_an_unknown_cost(store: TraceStore, damaged: Any) -> None:
    call = store.trace("LAST").model_calls[0]
    assert call.answer is not None
    broken = attrs.evolve(call, answer=attrs.evolve(call.answer, usage={"input_tokens": damaged}))
    assert cost_of(broken, Prices.of(PRICES)) is None


def test_large_amounts_are_not_rounded(store: TraceStore, page: Page) -> None:
    with served(traces_app(store, prices={"gpt": (823_045_000.0, 0.0)})) as address:
        page.goto(f"{address}/#/run/LAST")
        expect(page.locator(".summary")).to_contain_text("cost 24,691.35")


def test_a_run_that_was_not_recorded_completely_has_no_cost(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.run("by kantan-llm's own tracer")
        assert read_run(TraceStore(database.path), "LAST", Prices.of(PRICES))["cost"] is None


def test_a_call_that_was_refused_has_cost_nothing(store: TraceStore) -> None:
    (failed,) = store.traces(has_failed=True)
    assert run_data(store, PRICES, failed.trace_id)["cost"] == 0
    assert run_data(store, None, failed.trace_id)["cost"] is None


def test_the_page_shows_it(store: TraceStore, page: Page) -> None:
    data = run_data(store, PRICES)
    with served(traces_app(store, prices=PRICES)) as address:
        page.goto(f"{address}/#/run/LAST")
        expect(page.locator(".summary")).to_contain_text(f"cost {data['cost']:.4g}")
        page.get_by_role("treeitem").filter(has_text="model").first.click()
        facts = page.get_by_role("region", name="Details").locator(".facts").first
        expect(facts).to_contain_text(f"cost{data['calls'][0]['cost']:.4g}")
    with served(traces_app(store)) as address:
        page.goto(f"{address}/#/run/LAST")
        expect(page.locator(".summary")).to_contain_text("tokens")
        expect(page.locator(".summary")).not_to_contain_text("cost")


def test_a_report_file_shows_it(store: TraceStore, page: Page, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    arguments = [
        "traces",
        "report",
        "LAST",
        "--db",
        str(store.path),
        "-o",
        str(path),
        "--price",
        "gpt=2000,10000",
    ]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page.goto(path.as_uri())
    expect(page.locator(".summary")).to_contain_text(f"cost {run_data(store, PRICES)['cost']:.4g}")


@pytest.mark.parametrize("prices", [{"gpt": (1.0,)}, {"gpt": (-1.0, 1.0)}, [("gpt", (1.0, 1.0))], {"gpt": 3}])
def test_prices_that_are_none_are_refused(store: TraceStore, prices: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"E75.*prices"):
        traces_app(store, prices=prices)
