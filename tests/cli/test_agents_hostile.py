"""``kantan-agents agents`` with control characters, markup and very long names in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_folder import HOSTILE_DESCRIPTION, HOSTILE_NAME, agent_file, hostile_file


class TestHostileTexts:
    @pytest.mark.parametrize(
        "arguments",
        [["list"], ["list", "--all"], ["show", HOSTILE_NAME], ["search", "evil"], ["validate"]],
    )
    def test_text_in_a_file_is_never_markup_or_control_characters(
        self, kantan_agents: Any, project: Path, arguments: list[str]
    ) -> None:
        hostile_file(project / ".claude" / "agents" / "evil\x1b[2J\n[bold].md")
        hostile_file(project / ".kode" / "agents" / "hostile.md")
        outcome = kantan_agents("agents", *arguments)
        assert outcome.code == 0
        assert not {"\x1b", "\x07", "\x9b", "\r"} & set(outcome.stdout + outcome.stderr)
        if arguments[0] in ("list", "show", "search"):
            assert "evil [U+001B][2J[bold]x" in outcome.stdout
            assert "[red]d" in outcome.stdout

    @pytest.mark.parametrize("arguments", [["list"], ["show", "a"], ["search", "a"], ["list", "--json"]])
    def test_text_in_a_file_cannot_change_the_writing_direction(
        self, kantan_agents: Any, project: Path, arguments: list[str]
    ) -> None:
        description = "Deletes \u202eton\u202c \u2066it\u2069 \u200fall\u061c."
        agent_file(project / ".kode" / "agents" / "a.md", "a", description)
        outcome = kantan_agents("agents", *arguments)
        assert outcome.code == 0
        assert not set("\u202e\u202c\u2066\u2069\u200f\u061c") & set(outcome.stdout)
        if "--json" in arguments:
            assert json.loads(outcome.stdout)["agents"][0]["description"] == description
        else:
            assert "Deletes [U+202E]ton[U+202C] [U+2066]it" in " ".join(outcome.stdout.split())

    def test_json_contains_the_texts_unchanged(self, kantan_agents: Any, project: Path) -> None:
        hostile_file(project / ".kode" / "agents" / "hostile.md")
        outcome = kantan_agents("agents", "list", "--json")
        assert not {"\x1b", "\x07", "\x9b"} & set(outcome.stdout)
        (agent,) = json.loads(outcome.stdout)["agents"]
        assert (agent["name"], agent["description"]) == (HOSTILE_NAME, HOSTILE_DESCRIPTION)


class TestLongNames:
    """Names that would leave no space for other columns."""

    LONG = "n" * 120

    @pytest.fixture(autouse=True)
    def _two(self, project: Path) -> None:
        agent_file(project / ".claude" / "agents" / "a.md", "short", "Short one.")
        agent_file(project / ".claude" / "agents" / "b.md", self.LONG, "Long one.")

    @pytest.mark.parametrize("command", [["list"], ["search", "one"]])
    def test_on_a_terminal_long_names_are_cut(
        self, kantan_agents: Any, monkeypatch: pytest.MonkeyPatch, command: list[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        _, first, second = sorted(kantan_agents("agents", *command).stdout.splitlines()[:3])
        assert first == f"{'n' * 37}...  project  Long one."
        assert second == f"{'short':40}  project  Short one."

    @pytest.mark.parametrize("command", [["list"], ["search", "one"]])
    def test_in_a_pipe_long_names_are_complete_and_shift_only_their_own_row(
        self, kantan_agents: Any, monkeypatch: pytest.MonkeyPatch, command: list[str]
    ) -> None:
        monkeypatch.delenv("COLUMNS")
        _, first, second = sorted(kantan_agents("agents", *command).stdout.splitlines()[:3])
        assert first == f"{self.LONG}  project  Long one."
        assert second == f"{'short':40}  project  Short one."

    def test_an_error_shows_the_beginning_of_long_names(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "show", "x")
        outcome.is_one_error(f"[E32] Agent not found: x (available: {'n' * 57}..., short)")
