"""The complete record on the terminal: ``show --instructions --tools``, ``prompts --diff``, ``diff``."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import agents
import pytest
from rich.cells import cell_len

from kantan_agents import Agent, Prompt
from kantan_agents.testing import ScriptedModel, ScriptedToolCall, assistant_message, function_call
from tests.cli.recorded_runs import Recorded, ask, recording

CONTROL = {"\x1b", "\x07", "\x9b", "\x7f", "\r", "\ud83d"}
PRIVATE = agents.RunConfig(trace_include_sensitive_data=False)


@agents.function_tool(failure_error_function=lambda _, error: f"An error occurred: {error}")
def failing() -> str:
    """Fail."""
    raise ConnectionError("gone")


def run_privately(prompt: str | Prompt = "Help.") -> None:
    """Run an agent that keeps its content out of traces."""
    model = ScriptedModel([[assistant_message("Yes.")]])
    Agent("a", prompt, model=model).run("Hm?", run_config=PRIVATE)


@pytest.fixture
def traces(kantan_agents: Any) -> Any:
    """``traces(recorded, "show", "LAST")``: the output of a command that succeeds."""

    def run(recorded: Recorded, *arguments: str, code: int = 0) -> str:
        outcome = kantan_agents("traces", *arguments, "--db", str(recorded.path))
        assert (outcome.code, outcome.stderr) == (code, "")
        return str(outcome.stdout)

    return run


class TestShow:
    def test_instructions_and_tools_are_shown_on_demand(self, traces: Any, shop: Recorded) -> None:
        shown = traces(shop, "show", shop.ids["v1"])
        more = traces(shop, "show", shop.ids["v1"], "--instructions", "--tools")
        assert more.startswith(shown)
        assert "model call" not in shown
        lines = [line.split() for line in more.removeprefix(shown).splitlines()]
        for line in (
            "instructions Help, v1.",
            "tool look_up_order strict",
            "Look up an order.",
            "instructions as in model call 1",
            "tools as in model call 1",
            'arguments {"order_id": "4711"}',
            "rules allowed: no rule is about this tool",
            'result {"order": "4711", "carrier": "Lantern Post"}',
        ):
            assert line.split() in lines
        assert [line[:4] for line in lines if line[:2] == ["model", "call"]] == [
            ["model", "call", "1", "support"],
            ["model", "call", "2", "support"],
        ]

    def test_each_part_alone(self, traces: Any, shop: Recorded) -> None:
        instructions = traces(shop, "show", shop.ids["v1"], "--instructions")
        tools = traces(shop, "show", shop.ids["v1"], "--tools")
        assert "Help, v1." in instructions
        assert "Help, v1." not in tools
        assert "Look up an order." in tools
        assert "Look up an order." not in instructions

    def test_the_decision_of_the_rules_names_rule_and_layer(self, traces: Any, mixed: Recorded) -> None:
        for name, verdict in (("hidden", "denied E"), ("refused", "denied E")):
            shown = traces(mixed, "show", mixed.ids[name], "--tools")
            (line,) = [line.strip() for line in shown.splitlines() if line.strip().startswith("rules")]
            assert verdict in line
            assert "look_up_order" in line

    def test_settings_and_output_type_are_shown(self, traces: Any, shop: Recorded) -> None:
        shown = traces(shop, "show", shop.ids["bad"], "--instructions")
        assert "Judge." in shown
        assert "output" in shown[shown.index("model call 1") :]

    def test_each_run_of_a_trace_has_its_settings_and_errors(self, traces: Any, database: Any) -> None:
        settings = agents.ModelSettings(temperature=0.25)
        with recording(database.path), agents.trace("request"):
            ask("first", "Help.", "Hm?", ["Yes."], model_settings=settings)
            ask("second", "", "Hm?", [ScriptedToolCall("failing"), "No."], tools=[failing])
        shown = traces(Recorded(database.path, {}), "show", "LAST", "--instructions", "--tools")
        lines = [line.split() for line in shown.splitlines()]
        assert [line[2] for line in lines if line[:1] == ["run"]] == ["first", "second"]
        assert ["temperature", "0.25"] in lines
        assert ["tools", "none"] in lines
        assert ["instructions", "none"] in lines
        calls = " ".join(shown[shown.index("\ntool call") :].split())
        assert "rules allowed: no rule is about this tool result An error occurred: gone" in calls
        full = traces(Recorded(database.path, {}), "show", "LAST", "--tools", "--full")
        assert '"additionalProperties": false,' in [line.strip() for line in full.splitlines()]

    def test_json_has_the_records(self, traces: Any, shop: Recorded) -> None:
        data = json.loads(traces(shop, "show", shop.ids["v1"], "--json"))
        (run,) = data["runs"]
        assert data["missing"] == []
        assert run["model_calls"][0]["instructions"] == "Help, v1."
        assert run["tool_calls"][0]["name"] == "look_up_order"
        for rows in (traces(shop, "list", "--json"), traces(shop, "search", "parcel", "--json")):
            assert not {"runs", "missing"} & set(json.loads(rows)[0])

    def test_a_run_without_a_record_says_so(self, traces: Any, tmp_path: Path, database: Any) -> None:
        recorded = Recorded(database.path, {})
        with recording(database.path):
            run_privately()
        trace_id = "LAST"
        assert "not recorded" not in traces(recorded, "show", trace_id)
        for option in ("--instructions", "--tools"):
            assert "not recorded  run " in traces(recorded, "show", trace_id, option)

    @pytest.mark.parametrize("columns", ["30", "80"])
    @pytest.mark.parametrize("which", ["hostile", "failed", "judge"])
    def test_hostile_texts(
        self, traces: Any, hostile: Recorded, monkeypatch: Any, columns: str, which: str
    ) -> None:
        monkeypatch.setenv("COLUMNS", columns)
        for full in ([], ["--full"]):
            shown = traces(hostile, "show", hostile.ids[which], "--instructions", "--tools", *full)
            assert not CONTROL & set(shown)
        assert max(map(cell_len, shown.splitlines())) <= int(columns)


class TestPrompts:
    def test_the_change_from_each_version_to_the_next(self, traces: Any, shop: Recorded) -> None:
        diff = traces(shop, "prompts", "support", "--diff")
        assert diff.splitlines()[2:] == ["@@ -1 +1 @@", "-Help, v1.", "+Help, v2."]
        assert traces(shop, "prompts", "support", "v1", "v2", "--diff") == diff
        back = traces(shop, "prompts", "support", "v2", "v1", "--diff")
        assert back.splitlines()[3:] == ["-Help, v2.", "+Help, v1."]

    def test_an_edit_without_a_new_version_is_shown(self, traces: Any, database: Any) -> None:
        with recording(database.path):
            for text in ("Help.", "Help a lot."):
                ask("a", Prompt("p", "v1", text), "Hm?", ["Yes."])
        recorded = Recorded(database.path, {})
        shown = traces(recorded, "prompts", "p", "--diff").splitlines()
        assert shown[0] == "p v1 was edited without a new version:"
        assert shown[-2:] == ["-Help.", "+Help a lot."]
        (row,) = [row.split() for row in traces(recorded, "prompts", "p").splitlines() if "texts" in row]
        assert row == ["texts", "2"]

    def test_a_version_without_a_text_is_named(self, traces: Any, database: Any, kantan_agents: Any) -> None:
        with recording(database.path):
            for version in ("v1", "v2"):
                ask("a", Prompt("p", version, f"Help, {version}."), "Hm?", ["Yes."])
            ask("a", Prompt("p", "v3", "Help, v2."), "Hm?", ["Yes."])
            run_privately(Prompt("p", "v4", "Help, v4."))
        shown = traces(Recorded(database.path, {}), "prompts", "p", "--diff")
        assert "p v2 and p v3 have the same text.\n" in shown
        assert shown.endswith("\nThe text of p v4 is not recorded.\n")

    def test_one_text_only(self, traces: Any, shop: Recorded) -> None:
        assert traces(shop, "prompts", "assistant", "--diff") == (
            "No two recorded texts of prompt assistant found.\n"
        )
        same = traces(shop, "prompts", "support", "v1", "v1", "--diff")
        assert same == "support v1 and support v1 have the same text.\n"

    def test_json(self, traces: Any, shop: Recorded) -> None:
        (step,) = json.loads(traces(shop, "prompts", "support", "--diff", "--json"))
        assert (step["before"], step["after"]) == ("v1", "v2")
        assert "+Help, v2." in step["diff"]
        first, _ = json.loads(traces(shop, "prompts", "support", "--json"))
        assert (first["text"], first["texts"]) == ("Help, v1.", 1)

    @pytest.mark.parametrize("arguments", [["--diff"], ["support", "v1", "--diff"], ["support", "v1", "v2"]])
    def test_arguments_that_do_not_go_together(
        self, kantan_agents: Any, shop: Recorded, arguments: list[str]
    ) -> None:
        outcome = kantan_agents("traces", "prompts", *arguments, "--db", str(shop.path))
        outcome.is_one_error("[E75] ")

    def test_an_unknown_version(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "prompts", "support", "v1", "v9", "--diff", "--db", str(shop.path))
        outcome.is_one_error("[E87] ")


class TestDiff:
    def test_the_first_part_that_differs_and_the_rest(self, traces: Any, shop: Recorded) -> None:
        shown = traces(shop, "diff", shop.ids["v1"], shop.ids["v2"], code=1)
        first, *lines = shown.splitlines()
        assert first == "The requests of model call 1 differ; everything before it is the same."
        assert lines[:3] == ["  instructions  changed", "    -Help, v1.", "    +Help, v2."]
        assert "  tools.look_up_order  removed" in lines
        assert "  input[0]  changed" in lines
        facts = {line[:24].strip(): line.split() for line in lines[lines.index("") :]}
        assert facts["model calls"][-2:] == ["2", "1"]
        assert facts["calls of look_up_order"][-2:] == ["1", "0"]
        assert facts["tokens"][-2:] == ["30", "15"]

    def test_equal_runs(self, traces: Any, shop: Recorded) -> None:
        shown = traces(shop, "diff", shop.ids["v1"], shop.ids["v1"])
        assert shown.startswith("The requests and answers of both runs are the same.\n")

    def test_a_run_inside_a_trace_is_named_by_its_own_id(self, traces: Any, shop: Recorded) -> None:
        (run,) = json.loads(traces(shop, "show", shop.ids["open"], "--json"))["runs"]
        data = json.loads(traces(shop, "diff", run["run_id"], shop.ids["v2"], "--json", code=1))
        assert data["runs"][0]["run_id"] == run["run_id"]
        assert data["parts_at"]["call"] == 0
        assert data["parts_at"]["what"] == "request"
        assert [found["part"] for found in data["parts_at"]["differences"]] == ["agent", "input[0]"]

    def test_a_failed_call_and_a_longer_run(self, traces: Any, mixed: Recorded) -> None:
        shown = traces(mixed, "diff", mixed.ids["hidden"], mixed.ids["refused"], code=1)
        assert "tools.look_up_order  added" in shown

    def test_a_run_that_ends_earlier(self, traces: Any, database: Any) -> None:
        with recording(database.path):
            for turns in (1, 3):
                model = ScriptedModel(
                    [[function_call("failing", "{}", call_id="call_1")], [assistant_message("No.")]]
                )
                agent = Agent("a", "Help.", model=model, tools=[failing])
                with suppress(agents.MaxTurnsExceeded):
                    agent.run("Hm?", max_turns=turns, run_config=agents.RunConfig(trace_id=f"trace_{turns}"))
        shown = traces(Recorded(database.path, {}), "diff", "trace_1", "trace_3", code=1)
        assert shown.startswith("Only the second run has a model call 2 of 2; all before it are the same.\n")

    def test_of_very_many_parts_the_first_are_shown(self, traces: Any, database: Any) -> None:
        ids = []
        with recording(database.path):
            for text in ("one", "two"):
                items = [{"role": "user", "content": f"{text} {number}"} for number in range(12)]
                ids.append(ask("a", "Help.", items, ["Yes."]))
        shown = traces(Recorded(database.path, {}), "diff", *ids, code=1)
        assert "  input[9]  changed\n" in shown
        assert "  ... 2 more parts\n" in shown

    def test_without_a_record_it_says_so(self, traces: Any, shop: Recorded, database: Any) -> None:
        recorded = Recorded(database.path, {})
        with recording(database.path):
            run_privately()
            known = ask("a", "Help.", "Hm?", ["Yes."])
        (hidden,) = [trace.trace_id for trace in database.traces() if trace.trace_id != known]
        shown = traces(recorded, "diff", hidden, known, code=1)
        assert shown.startswith("not recorded  run ")
        assert "are the same" not in shown

    def test_an_unknown_run(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "diff", "LAST", "nobody", "--db", str(shop.path))
        assert (outcome.code, outcome.stdout) == (2, "")
        assert outcome.stderr.startswith("error: [kantan-agents][E61] ")

    def test_hostile_texts(self, traces: Any, hostile: Recorded, monkeypatch: Any) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        for json_option in ([], ["--json"]):
            shown = traces(
                hostile, "diff", hostile.ids["hostile"], hostile.ids["failed"], *json_option, code=1
            )
            assert not CONTROL & set(shown)
