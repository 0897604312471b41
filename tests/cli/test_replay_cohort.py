"""``kantan-agents replay cohort``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import attrs
import pytest

from kantan_agents import Agent, Prompt
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.cli.conftest import Invoke
from tests.cli.recorded_runs import recording

MODULE = """
from kantan_agents import Agent, Prompt

def status(number: str) -> str:
    "Return the status of an order."
    raise SystemError("a tool has run")

agent = Agent("shop", Prompt("shop", "v1", "Help."), model="gpt-5-mini", tools=[status])
something = 3
"""


def reply(request: Any) -> Any:
    last = request.input[-1]
    if "broken" in str(request.system_instructions):
        return Reply("no", status=400)
    if last.get("type") == "function_call_output":
        return str(last["output"])
    number = str(last["content"]).split()[-1]
    careful = "careful" in str(request.system_instructions) and number == "7"
    return ScriptedToolCall("status", {"number": "70" if careful else number})


@attrs.frozen
class Shop:
    """A database with three runs, and the module of their agent."""

    db: Path
    server: OfflineServer
    arguments: list[str]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    def status(number: str) -> str:
        """Return the status of an order."""
        return f"order {number} is on its way"

    name = f"shop_{abs(hash(tmp_path))}"  # Python keeps a module that was imported
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    db = tmp_path / "traces.db"
    with OfflineServer(reply) as server:
        for key, value in server.environment().items():
            monkeypatch.setenv(key, value)
        with recording(db):
            agent = Agent("shop", Prompt("shop", "v1", "Help."), model="gpt-5-mini", tools=[status])
            for number in (5, 6, 7):
                agent.run(f"order {number}")
        server.requests.clear()
        arguments = ["replay", "cohort", "--db", str(db), "--agent", f"{name}:agent", "--prompt", "shop"]
        yield Shop(db, server, arguments)
    agents.set_trace_processors([])


def test_shows_what_became_of_each_run(kantan_agents: Invoke, shop: Shop) -> None:
    outcome = kantan_agents(*shop.arguments, "--change", "prompt=Help carefully.", "--last", "7d")
    assert outcome.code == 0, outcome.stderr
    for part in ("3 of 3: 2 same, 1 diverged", "66.7% without divergence", "status of shop: 1 run"):
        assert part in outcome.stdout
    assert 'step 1: status({"number": "70"})' in " ".join(outcome.stdout.split())


def test_prints_json_and_goes_on_where_it_stopped(kantan_agents: Invoke, shop: Shop) -> None:
    arguments = [*shop.arguments, "--change", "settings.temperature=0.5", "--json", "--name", "try"]
    first = kantan_agents(*arguments, "--price", "gpt-5-mini=1,2")
    data = json.loads(first.stdout)
    assert (data["name"], data["counts"]["same"], data["coverage"]) == ("try", 3, 1.0)
    assert data["before"]["cost"] == pytest.approx((60 * 1 + 30 * 2) / 1e6)
    sent = len(shop.server.requests)
    again = json.loads(kantan_agents(*arguments, "--price", "gpt-5-mini=1,2").stdout)
    assert len(shop.server.requests) == sent
    assert again["runs"] == data["runs"]


BILLING = """
from kantan_agents import Agent, Prompt

billing = Agent("accounts", Prompt("billing", "v2", "Explain the bill."), model="gpt-5-mini")
triage = Agent("triage", "Find the agent.", model="gpt-5-mini", handoffs=[billing])
"""


def billing_runs(server: OfflineServer, path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record a run of an agent that hands over to another; return the arguments to make it again."""
    name = f"billing_{abs(hash(path))}"
    (path / f"{name}.py").write_text(BILLING)
    monkeypatch.syspath_prepend(str(path))
    for key, value in server.environment().items():
        monkeypatch.setenv(key, value)
    db = path / "billing.db"
    with recording(db):
        __import__(name).triage.run("my bill")
    server.requests.clear()
    agents.set_trace_processors([])
    return ["replay", "cohort", "--db", str(db), "--agent", f"{name}:triage", "--json"]


@pytest.mark.parametrize("options", [("--prompt", "billing", "--version", "v2"), ("--of", "accounts")])
def test_the_agent_with_the_selected_prompt_is_changed_where_the_run_reaches_it(
    kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    def hand_over(request: Any) -> Any:
        is_first = "Find" in str(request.system_instructions)
        return ScriptedToolCall("transfer_to_accounts", {}) if is_first else "It is right."

    with OfflineServer(hand_over) as server:
        arguments = billing_runs(server, tmp_path, monkeypatch)
        outcome = kantan_agents(*arguments, *options, "--change", "model=gpt-5")
        assert outcome.code == 0, outcome.stderr
        assert [request.model for request in server.requests] == ["gpt-5-mini", "gpt-5"]
        data = json.loads(outcome.stdout)
        assert (data["changes"], data["counts"]["same"]) == (["model=gpt-5 of accounts"], 1)
        failed = kantan_agents(*arguments, "--of", "account", "--change", "model=gpt-5")
        assert failed.code == 2
        assert "did you mean 'accounts'" in failed.stderr


def test_runs_that_fail_are_exit_code_1_beyond_the_most_that_may(kantan_agents: Invoke, shop: Shop) -> None:
    for most, code in (("0", 1), ("2", 1), ("100%", 0)):
        outcome = kantan_agents(*shop.arguments, "--change", "prompt=Be broken.", "--max-failed", most)
        assert outcome.code == code
        assert (f"error: 3 of 3 runs failed, and --max-failed is {most}" in outcome.stderr) == (code == 1)


def test_a_prompt_that_no_agent_has_now_is_an_error(kantan_agents: Invoke, shop: Shop) -> None:
    module = Path(shop.arguments[shop.arguments.index("--agent") + 1].partition(":")[0] + ".py")
    module.write_text(MODULE.replace('Prompt("shop"', 'Prompt("store"'))
    outcome = kantan_agents(*shop.arguments, "--change", "model=gpt-5")
    assert outcome.code == 2
    assert "has the prompt 'shop' now; name the agent with --of" in outcome.stderr
    assert kantan_agents(*shop.arguments, "--of", "shop", "--change", "model=gpt-5").code == 0


def test_experiments_are_exported_as_json_lines(kantan_agents: Invoke, shop: Shop, tmp_path: Path) -> None:
    command = ("traces", "export", "--db", str(shop.db), "--experiments")
    assert (kantan_agents(*command).code, kantan_agents(*command).stdout) == (0, "")
    made = {}
    for name in ("first", "second"):
        change = f"prompt=Help carefully, {name}."
        made[name] = json.loads(
            kantan_agents(*shop.arguments, "--change", change, "--name", name, "--json").stdout
        )
    printed = kantan_agents(*command).stdout
    exported = [json.loads(line) for line in printed.splitlines()]
    assert [one["name"] for one in exported] == ["second", "first"]
    for one in exported:
        runs = one.pop("runs")
        assert sorted(runs, key=str) == sorted(made[one["name"]].pop("runs"), key=str)
        assert one == made[one["name"]]
    assert kantan_agents(*command, "--limit", "1").stdout == printed.splitlines(keepends=True)[0]
    target = tmp_path / "experiments.jsonl"
    outcome = kantan_agents(*command, "--output", str(target))
    assert outcome.stderr == f"2 experiments written to {target}\n"
    assert target.read_text(encoding="utf-8") == printed


def test_filters_of_runs_do_not_choose_experiments(kantan_agents: Invoke, shop: Shop, tmp_path: Path) -> None:
    target = tmp_path / "experiments.jsonl"
    command = ("traces", "export", "--db", str(shop.db), "--experiments", "--output", str(target))
    outcome = kantan_agents(*command, "--prompt", "shop")
    assert (outcome.code, outcome.stdout, target.exists()) == (2, "", False)
    assert "[E75] Invalid option --experiments: filters choose runs" in outcome.stderr


def test_new_runs_are_recorded_without_no_record(kantan_agents: Invoke, shop: Shop) -> None:
    def count() -> int:
        return len(json.loads(kantan_agents("traces", "list", "--db", str(shop.db), "--json").stdout))

    kantan_agents(*shop.arguments, "--change", "settings.temperature=0.5", "--no-record")
    assert count() == 3
    kantan_agents(*shop.arguments, "--change", "settings.temperature=0.6")
    assert count() == 6


def test_changes_are_read_from_options_and_files(kantan_agents: Invoke, shop: Shop) -> None:
    Path("prompt.md").write_text("Help politely.\n")
    Path("rules.json").write_text('{"params": {"status": {"number": {"maxLength": 0}}}}')
    changes = [
        "prompt=@prompt.md",
        "model=gpt-5",
        "settings.temperature=0.1",
        "rules=@rules.json",
        "tool.status.description=Look it up.",
    ]
    options = [part for change in changes for part in ("--change", change)]
    data = json.loads(kantan_agents(*shop.arguments, *options, "--json", "--limit", "1").stdout)
    (request, *_) = shop.server.requests
    assert (request.model, request.system_instructions) == ("gpt-5", "Help politely.")
    assert request.body["temperature"] == 0.1
    assert request.body["tools"][0]["description"] == "Look it up."
    assert data["runs"][0]["decisions"][0]["kind"] == "denial"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--change", "color=red"], "[E75] Invalid option --change"),
        (["--change", "model="], "[E75] Invalid option --change"),
        (["--change", "prompt=@missing.md"], "[E94]"),
        (["--change", "prompt=Help."], "[E95]"),
        (["--change", "rules={"], "is not JSON"),
        (["--change", "settings.temperature=1", "--version", "v9"], "[E97]"),
        (["--change", "settings.temperature=1", "--max-tokens", "10"], "[E98]"),
        (["--change", "settings.temperature=1", "--live", "statos"], "did you mean 'status'"),
        (["--change", "settings.temperature=1", "--trace", "unknown"], "[E61]"),
        (["--change", "settings.temperature=1", "--price", "x"], "MODEL=IN,OUT"),
        (["--change", "settings.temperature=1", "--last", "soon"], "--last"),
        (
            ["--change", "settings.temperature=1", "--trace", "LAST", "--last", "7d"],
            "[E75] Invalid option --last",
        ),
        (["--change", "settings.temperature=1", "--max-cost", "1"], "--price MODEL=IN,OUT"),
        (["--change", "settings.temperature=hot"], "made: temperature: Input should be a valid number"),
    ],
)
def test_bad_input_is_one_line_and_costs_nothing(
    kantan_agents: Invoke, shop: Shop, options: list[str], text: str
) -> None:
    outcome = kantan_agents(*shop.arguments, *options)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not shop.server.requests


@pytest.mark.parametrize("agent", ["shop", "missing_module:agent", "json:loads", "json:missing"])
def test_an_agent_that_cannot_be_imported_is_named(kantan_agents: Invoke, shop: Shop, agent: str) -> None:
    arguments = [*shop.arguments, "--agent", agent, "--change", "settings.temperature=1"]
    outcome = kantan_agents(*arguments)
    assert outcome.code == 2
    assert "[E75] Invalid option --agent" in outcome.stderr


def test_a_provider_that_is_not_reachable_is_one_line_and_nothing_is_lost(
    kantan_agents: Invoke, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*shop.arguments, "--change", "settings.temperature=0.5", "--name", "try", "--json"]
    kantan_agents(*arguments, "--limit", "1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    outcome = kantan_agents(*arguments, "--change", "model=gpt-5")
    assert outcome.code == 2
    assert "127.0.0.1:9" in outcome.stderr
    assert "(0 of 3 runs are kept)" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_without_a_command_the_help_is_shown(kantan_agents: Invoke) -> None:
    assert "cohort" in kantan_agents("replay").stdout
