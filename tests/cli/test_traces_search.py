"""``kantan-agents traces search``, ``prompts`` and ``failed``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.cells import cell_len

from tests.cli.recorded_runs import Recorded


class TestSearch:
    def found(self, kantan_agents: Any, shop: Recorded, *arguments: str) -> list[tuple[str, str]]:
        outcome = kantan_agents("traces", "search", "--json", "--db", str(shop.path), *arguments)
        assert (outcome.code, outcome.stderr) == (0, "")
        names = {trace_id: name for name, trace_id in shop.ids.items()}
        return [(names[run["trace_id"]], run["snippet"]) for run in json.loads(outcome.stdout)]

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (["PARIS"], [("plain", "Paris.")]),
            (["france", "paris"], [("plain", "Capital of France?")]),
            (["france", "london"], []),
            (["明日の予定"], [("wide", "東京の天気はどうですか、明日の予定も教えてください。")]),
            (["where is", "4711"], [("v1", "Where is order 4711?")]),
        ],
    )
    def test_all_words_in_any_case(
        self, kantan_agents: Any, shop: Recorded, words: list[str], found: list[tuple[str, str]]
    ) -> None:
        assert self.found(kantan_agents, shop, *words) == found

    def test_text_in_a_tool_result_is_found(self, kantan_agents: Any, shop: Recorded) -> None:
        ((name, snippet),) = self.found(kantan_agents, shop, "lantern")
        assert name == "v1"
        assert snippet.endswith('"carrier": "Lantern Post"}')

    def test_filters_apply_too(self, kantan_agents: Any, shop: Recorded) -> None:
        assert [name for name, _ in self.found(kantan_agents, shop, "e", "--errors")] == ["failed"]
        assert len(self.found(kantan_agents, shop, "e", "--limit", "2")) == 2

    def test_rows_show_the_text_around_the_match(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: Any
    ) -> None:
        outcome = kantan_agents("traces", "search", "paris", "--db", str(shop.path))
        head, row, *below = outcome.stdout.splitlines()
        assert head.split()[0] == "trace"
        assert row.split()[0] == shop.ids["plain"][-8:]
        assert below == ["  input: Capital of France?", "  output: Paris."]
        monkeypatch.delenv("COLUMNS")
        outcome = kantan_agents("traces", "search", "paris", "--db", str(shop.path))
        head, row = outcome.stdout.splitlines()
        assert head.split()[-2:] == ["found", "input"]
        assert row.endswith("  output: Paris.  Capital of France?")

    @pytest.mark.parametrize("columns", ["40", "80", "120", None])
    def test_a_match_in_the_input_is_printed_once(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: Any, columns: str | None
    ) -> None:
        if columns is None:
            monkeypatch.delenv("COLUMNS")
        else:
            monkeypatch.setenv("COLUMNS", columns)
        outcome = kantan_agents("traces", "search", "france", "--db", str(shop.path))
        assert outcome.stdout.count("Capital of France?") == 1

    def test_a_match_in_a_tool_names_the_tool(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "search", "lantern", "--db", str(shop.path))
        assert "  input: Where is order 4711?\n  look_up_order: " in outcome.stdout

    def test_pattern_characters_are_literal(self, kantan_agents: Any, shop: Recorded) -> None:
        for word in ("(", "[", "\\", "."):
            assert kantan_agents("traces", "search", word, "--db", str(shop.path)).code == 0

    def test_an_empty_word(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "search", "a", " ", "--db", str(shop.path))
        assert outcome.code == 2
        assert outcome.stderr == "error: [kantan-agents][E75] Invalid option WORDS: must not be empty\n"

    def test_hostile_texts(self, kantan_agents: Any, hostile: Recorded) -> None:
        outcome = kantan_agents("traces", "search", "smile", "--db", str(hostile.path))
        assert outcome.code == 0
        assert not {"\x1b", "\x07", "\x9b", "\x7f", "\r", "\u2028"} & set(outcome.stdout)
        assert max(map(cell_len, outcome.stdout.splitlines())) <= 80


class TestPrompts:
    def test_a_row_for_each_version(self, kantan_agents: Any, shop: Recorded, monkeypatch: Any) -> None:
        monkeypatch.setenv("COLUMNS", "140")
        outcome = kantan_agents("traces", "prompts", "--db", str(shop.path))
        assert (outcome.code, outcome.stderr) == (0, "")
        head, *rows = outcome.stdout.splitlines()
        assert head.split()[:7] == ["prompt", "version", "runs", "failed", "unfinished", "rate", "score"]
        cells = {tuple(row.split()[:2]): row.split() for row in rows}
        assert cells["support", "v1"][2:7] == ["1", "0", "0", "0.0%", "0.20"]
        assert cells["support", "v2"][2:7] == ["3", "1", "0", "33.3%", "0.90"]
        assert ("answer-quality", "v1") in cells

    def test_versions_side_by_side(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "prompts", "support", "--db", str(shop.path))
        rows = [
            [cell.strip() for cell in row.split("  ") if cell.strip()] for row in outcome.stdout.splitlines()
        ]
        facts = {row[0]: row[1:] for row in rows}
        assert facts["support"] == ["v1", "v2"]
        assert facts["runs"] == ["1", "3"]
        assert facts["failures"] == ["0", "1"]
        assert facts["failure rate"] == ["0.0%", "33.3%"]
        assert facts["mean score"] == ["0.20", "0.90"]
        assert facts["tokens a run"] == ["30", "10"]
        assert set(facts) > {"latency p50", "latency p95", "first run", "last run"}

    def test_versions_that_do_not_fit_follow_below(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: Any
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        outcome = kantan_agents("traces", "prompts", "support", "--db", str(shop.path))
        first, second = outcome.stdout.split("\n\n")
        assert first.splitlines()[0].split() == ["support", "v1"]
        assert second.splitlines()[0].split() == ["support", "v2"]
        assert max(map(len, outcome.stdout.splitlines())) <= 40

    @pytest.mark.parametrize("columns", ["30", "60", "80"])
    def test_every_width(self, kantan_agents: Any, shop: Recorded, monkeypatch: Any, columns: str) -> None:
        monkeypatch.setenv("COLUMNS", columns)
        outcome = kantan_agents("traces", "prompts", "--db", str(shop.path))
        assert outcome.code == 0
        assert max(map(cell_len, outcome.stdout.splitlines())) <= int(columns)

    def test_json(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "prompts", "support", "--json", "--db", str(shop.path))
        first, second = json.loads(outcome.stdout)
        assert (first["prompt_name"], first["prompt_version"], first["runs"]) == ("support", "v1", 1)
        assert second["failure_rate"] == pytest.approx(1 / 3)
        assert second["tokens_per_run"] == 10
        assert second["first_run"].endswith("+00:00")

    def test_hostile_names(self, kantan_agents: Any, hostile: Recorded) -> None:
        for arguments in ([], ["support"]):
            outcome = kantan_agents("traces", "prompts", *arguments, "--db", str(hostile.path))
            assert outcome.code == 0
            assert not {"\x1b", "\x07", "\x9b", "\x7f"} & set(outcome.stdout)


class TestFailed:
    def test_by_bucket_with_the_answer_that_was_judged(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "failed", "--db", str(shop.path))
        assert (outcome.code, outcome.stderr) == (0, "")
        for part in ("empathy", "0.2  empathy - nobody says sorry", "came from support v1", shop.ids["v1"]):
            assert part in outcome.stdout
        assert "0.9" not in outcome.stdout

    def test_the_threshold(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "failed", "--threshold", "0.95", "--db", str(shop.path))
        assert "0.9  accuracy - all is so" in outcome.stdout
        outcome = kantan_agents("traces", "failed", "--threshold", "0.1", "--db", str(shop.path))
        assert (outcome.code, outcome.stdout) == (0, "No verdict below 0.1 found.\n")
        outcome = kantan_agents("traces", "failed", "--threshold", "nan", "--db", str(shop.path))
        assert outcome.code == 2

    def test_prompt_version_and_limit(self, kantan_agents: Any, shop: Recorded) -> None:
        def scores(*options: str) -> list[float]:
            outcome = kantan_agents(
                "traces", "failed", "--threshold", "1", "--json", "--db", str(shop.path), *options
            )
            return [failure["score"] for failure in json.loads(outcome.stdout)]

        assert sorted(scores()) == [0.2, 0.9]
        assert scores("--limit", "1") == [0.9]
        assert scores("--prompt", "support", "--version", "v1") == [0.2]
        assert scores("--version", "v2") == [0.9]
        assert scores("--prompt", "answer-quality") == []

    def test_json(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "failed", "--json", "--db", str(shop.path))
        (failure,) = json.loads(outcome.stdout)
        assert failure["bucket"] == "empathy"
        assert failure["score"] == 0.2
        assert failure["comment"] == "empathy - nobody says sorry"
        assert failure["judge_trace_id"] == shop.ids["bad"]
        assert failure["trace_id"] == shop.ids["v1"]
        assert (failure["prompt_name"], failure["prompt_version"]) == ("support", "v1")
        assert failure["judged_at"].endswith("+00:00")

    def test_hostile_comments(self, kantan_agents: Any, hostile: Recorded, monkeypatch: Any) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        outcome = kantan_agents("traces", "failed", "--db", str(hostile.path))
        assert outcome.code == 0
        assert not {"\x1b", "\x07", "\x9b", "\x7f", "\r", "\u2028"} & set(outcome.stdout)
        assert hostile.ids["hostile"] in outcome.stdout
        assert max(map(cell_len, outcome.stdout.splitlines())) <= 60
