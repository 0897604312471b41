"""``kantan-agents traces show``: selecting a run, its header, the tree, and cut texts."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from rich.cells import cell_len

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, ScriptedToolCall, assistant_message
from tests.cli.recorded_runs import LONG, UNBROKEN, Recorded, ask, recording


def shown(kantan_agents: Any, shop: Recorded, which: str, *options: str) -> str:
    outcome = kantan_agents("traces", "show", which, "--db", str(shop.path), *options)
    assert (outcome.code, outcome.stderr) == (0, "")
    return str(outcome.stdout)


class TestWhich:
    def test_last_is_the_newest(self, kantan_agents: Any, shop: Recorded) -> None:
        assert shop.ids["open"] in shown(kantan_agents, shop, "LAST")

    @pytest.mark.parametrize("begin", [0, len("trace_")])
    @pytest.mark.parametrize("end", [None, -2])
    def test_by_trace_id_run_id_and_the_beginning_of_either(
        self, kantan_agents: Any, shop: Recorded, begin: int, end: int | None
    ) -> None:
        assert shop.ids["v1"] in shown(kantan_agents, shop, shop.ids["v1"][begin:end])

    def test_none(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "show", "trace_nobody", "--db", str(shop.path))
        outcome.is_one_error("[E61] No such trace: trace_nobody in ")

    def test_several(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "show", "trace_0", "--db", str(shop.path))
        assert (outcome.code, outcome.stdout) == (2, "")
        assert re.search(
            r"\[E61\] No such trace: trace_0 in .*: \d traces have this beginning or end: trace_0",
            outcome.stderr,
        )


class TestView:
    def test_a_run_with_a_tool(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["v1"])
        lines = text.splitlines()
        assert lines[0] == f"trace     {shop.ids['v1']}"
        assert lines[1] == "status    ok"
        for line in (
            "agent     support",
            "prompt    support v1",
            "tokens    30 (20 in, 10 out)",
            "input     Where is order 4711?",
            "output    It is on its way.",
        ):
            assert line in lines
        assert re.search(r"├─ function  look_up_order  \d+ ms$", text, re.MULTILINE)
        assert re.search(r'in      \{"order_id": "4711"\}$', text, re.MULTILINE)
        assert re.search(r'out     \{"order": "4711",', text)
        assert "usage_total" not in text
        assert "\x1b" not in text

    def test_the_tree_is_drawn(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["plain"])
        tree = re.sub(r"\d+(\.\d)? m?s", "T", text[text.index("\n\n") + 2 :])
        assert tree == (
            "├─ agent  assistant  T\n"
            "│  └─ response  T  offline-model  15 tokens\n"
            "│        in      user: Capital of France?\n"
            "│        out     Paris.\n"
            "└─ generation  T\n"
            "      in      Capital of France?\n"
            "      out     Paris.\n"
        )

    def test_all_shows_the_spans_of_the_sdk_too(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["plain"], "--all")
        tree = re.sub(r"\d+(\.\d)? m?s", "T", text[text.index("\n\n") + 2 :])
        assert tree.startswith(
            "├─ custom  task  T\n"
            "│  └─ agent  assistant  T\n"
            "│     └─ custom  turn 1  T\n"
            "│        └─ response  T  offline-model  15 tokens\n"
        )

    def test_a_turn_with_an_error_is_shown(self, kantan_agents: Any, database: Any) -> None:
        with recording(database.path):
            trace_id = ask("a", "Help.", "Hm?", [ScriptedToolCall("unknown"), "Never mind."])
        text = kantan_agents("traces", "show", trace_id, "--db", str(database.path)).stdout
        assert re.search(r"^│  ├─ custom  turn 1 .*\n│  │  │  error   Tool not found", text, re.MULTILINE)
        assert "turn 2" not in text

    def test_depth_shows_how_many_spans_are_below(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["v1"], "--depth", "1")
        tree = re.sub(r"\d+(\.\d)? m?s\b", "T", text[text.index("\n\n") + 2 :])
        assert tree == (
            "├─ agent  support  T\n"
            "│     3 spans below\n"
            "└─ generation  T\n"
            "      in      Where is order 4711?\n"
            "      out     It is on its way.\n"
        )
        assert shown(kantan_agents, shop, shop.ids["v1"], "--depth", "9") == shown(
            kantan_agents, shop, shop.ids["v1"]
        )

    def test_a_hand_off_shows_source_and_target(self, kantan_agents: Any, database: Any) -> None:
        billing = Agent("billing", "Bill.", model=ScriptedModel([[assistant_message("Paid.")]]))
        with recording(database.path):
            replies = [ScriptedToolCall("transfer_to_billing")]
            trace_id = ask("triage", "Help.", "My bill?", replies, handoffs=[billing])
        text = kantan_agents("traces", "show", trace_id, "--db", str(database.path)).stdout
        assert re.search(r"handoff  .*triage -> billing", text)

    def test_metadata(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["plain"])
        for entry in ("tenant  acme", "count  42", "beta  true", "none  null", "a.b  dotted"):
            assert f" {entry}\n" in text

    def test_a_failed_run(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["failed"])
        assert "status    Error code: 400" in text
        assert "error   Error code: 400" in text
        assert '"BadRequestError"' in text

    def test_a_verdict(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["bad"])
        assert "rubric    0.2\n          empathy - nobody says sorry\n          accuracy - no date\n" in text
        assert f"judged_trace_id  {shop.ids['v1']}" in text

    def test_a_run_inside_an_open_trace(self, kantan_agents: Any, shop: Recorded) -> None:
        text = shown(kantan_agents, shop, shop.ids["open"])
        assert "workflow  request" in text
        assert "custom  agent_run" in text
        assert '"prompt_version": "v2"' in text

    @pytest.mark.parametrize("columns", [30, 60, 80, 400])
    def test_every_width(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch, columns: int
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        for name in ("v1", "failed", "wide"):
            text = shown(kantan_agents, shop, shop.ids[name])
            assert max(map(cell_len, text.splitlines())) <= min(columns, 100)

    def test_a_deep_trace_on_a_narrow_terminal(
        self, kantan_agents: Any, database: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        database.traces()
        with closing(sqlite3.connect(database.path)) as connection, connection:
            connection.execute("INSERT INTO traces VALUES ('trace_deep', 'deep', NULL, NULL)")
            for depth in range(60):
                connection.execute(
                    "INSERT INTO spans (id, trace_id, parent_id, span_type, name, input, ingest_seq) "
                    "VALUES (?, 'trace_deep', ?, 'function', ?, 'said', ?)",
                    (f"span_{depth}", f"span_{depth - 1}", f"step {depth}", -depth),
                )
        monkeypatch.setenv("COLUMNS", "60")
        text = kantan_agents("traces", "show", "LAST", "--db", str(database.path)).stdout
        assert max(map(cell_len, text.splitlines())) <= 60
        assert [int(found) for found in re.findall(r"└─ function  step (\d+)\n", text)] == list(range(60))

    def test_spans_in_a_cycle_are_shown_nevertheless(self, kantan_agents: Any, database: Any) -> None:
        database.traces()
        with closing(sqlite3.connect(database.path)) as connection, connection:
            connection.execute("INSERT INTO traces VALUES ('trace_circle', 'circle', NULL, NULL)")
            for span, parent in (("a", "b"), ("b", "a"), ("c", "c"), ("d", "nobody")):
                connection.execute(
                    "INSERT INTO spans (id, trace_id, parent_id, span_type, name) "
                    "VALUES (?, 'trace_circle', ?, 'custom', ?)",
                    (f"span_{span}", f"span_{parent}", f"named {span}"),
                )
        text = kantan_agents("traces", "show", "LAST", "--db", str(database.path)).stdout
        assert sorted(re.findall("named (.)", text)) == ["a", "b", "c", "d"]

    def test_a_trace_without_spans(self, kantan_agents: Any, database: Any) -> None:
        database.traces()
        with closing(sqlite3.connect(database.path)) as connection, connection:
            connection.execute("INSERT INTO traces VALUES ('trace_new', 'flow', 'group 7', NULL)")
        outcome = kantan_agents("traces", "show", "LAST", "--db", str(database.path))
        assert outcome.stdout == (
            "trace     trace_new\nstatus    unfinished\nworkflow  flow\ngroup     group 7\n"
        )


class TestLength:
    def test_long_texts_are_cut_and_show_their_length(self, kantan_agents: Any, hostile: Recorded) -> None:
        text = shown(kantan_agents, hostile, hostile.ids["hostile"])
        assert re.search(r"wor?d? \.\.\. \(1\d,\d{3}\s+characters\)", text)
        assert "xxx" not in text

    def test_full_shows_complete_texts_with_their_line_ends(
        self, process: Any, hostile: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("COLUMNS")
        outcome = process("traces", "show", hostile.ids["hostile"], "--full", "--db", str(hostile.path))
        assert (outcome.code, outcome.stderr) == (0, "")
        assert UNBROKEN in outcome.stdout
        assert LONG in outcome.stdout
        assert re.search(r"one\n[ │]+two\n[ │]*\n[ │]+three", outcome.stdout)
        assert "characters)" not in outcome.stdout

    @pytest.mark.parametrize("options", [[], ["--full"]])
    @pytest.mark.parametrize("name", ["hostile", "judge", "failed"])
    def test_hostile_texts_are_texts(
        self, kantan_agents: Any, hostile: Recorded, options: list[str], name: str
    ) -> None:
        text = shown(kantan_agents, hostile, hostile.ids[name], *options)
        assert not {"\x1b", "\x07", "\x9b", "\x7f", "\r", "\ud83d"} & set(text)
        assert "[bold red]x[/]" in text
        assert max(map(cell_len, text.splitlines())) <= 80

    def test_ascii_guides_on_an_ascii_terminal(
        self, process: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYTHONIOENCODING", "ascii")
        outcome = process("traces", "show", shop.ids["v1"], "--db", str(shop.path))
        assert outcome.stdout.isascii()
        assert "`- generation" in outcome.stdout
        assert "\\u" not in outcome.stdout


def test_json_is_everything(kantan_agents: Any, shop: Recorded) -> None:
    run = json.loads(shown(kantan_agents, shop, shop.ids["v1"], "--json"))
    assert run["trace_id"] == shop.ids["v1"]
    assert run["metadata"]["prompt_version"] == "v1"
    (tool,) = (span for span in run["spans"] if span["span_type"] == "function")
    assert (tool["name"], tool["input"]) == ("look_up_order", '{"order_id": "4711"}')
    assert tool["started_at"].endswith("+00:00")
    assert tool["raw"]["span_data"]["type"] == "function"


def test_json_of_hostile_texts(kantan_agents: Any, hostile: Recorded) -> None:
    text = shown(kantan_agents, hostile, hostile.ids["failed"], "--json")
    assert not {"\x1b", "\x9b", "\x7f", "\u2028", "\ud83d"} & set(text)
    assert text.count("\n") == 1
    assert json.loads(text)["error"].startswith("\ufffd\x1b[2J")
