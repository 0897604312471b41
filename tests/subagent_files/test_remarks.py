"""Remarks: what a file says that has no effect here, or another effect than in other programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given

from kantan_agents.subagent_files import MODELS, AgentDefinition, model_of
from kantan_agents.subagent_files import remarks as remarks_module
from kantan_agents.subagent_files.frontmatter.keys import folded
from kantan_agents.subagent_files.remarks import remarks_of
from tests.subagent_files.agent_texts import definitions


def remarks(*lines: str) -> list[tuple[str, str]]:
    text = "\n".join(["---", "name: a", "description: b", *lines, "---", "", "P"])
    return [(remark.key, remark.message) for remark in remarks_of(AgentDefinition.loads(text))]


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("permissionMode: plan", "Claude Code"),
        ("permissionMode: default", "Claude Code"),
        ("permission-mode: dontAsk", "Claude Code"),
        ("hooks: {PreToolUse: [{matcher: Bash}]}", "Claude Code"),
        ("isolation: worktree", "Claude Code"),
        ("readonly: true", "Cursor"),
        ("read-only: yes", "Cursor"),
        ("permission: {edit: deny}", "OpenCode"),
        ("maxSteps: 3", "OpenCode"),
        ("disabled: true", "OpenCode"),
        ("mode: primary", "OpenCode"),
        ("agents: [a]", "VS Code"),
        ("agents: []", "VS Code"),
        ("disable-model-invocation: true", "VS Code"),
        ("user-invocable: false", "VS Code"),
        ("timeout_mins: 5", "Gemini CLI"),
        ("sandbox: read-only", "Codex"),
    ],
)
def test_a_limit_of_another_program_that_has_no_effect_here_is_remarked(line: str, program: str) -> None:
    ((key, message),) = remarks(line)
    assert message.startswith(f"{key}: a limit of {program} that has no effect here; ")


@pytest.mark.parametrize(
    "line",
    [
        "permissionMode: bypassPermissions",
        "hooks: {}",
        "readonly: false",
        "read-only: no",
        "disabled: false",
        "mode: subagent",
        "user-invocable: true",
        "author: me",
        "tags: [a, b]",
        "color: red",
        "maxTurns: 5",
        "model: sonnet",
        "model: inherit",
        "model: gpt-6.1-terra",
        "disallowedTools: Bash",
    ],
)
def test_what_limits_nothing_or_has_its_effect_is_not_remarked(line: str) -> None:
    assert remarks(line) == []


def test_the_page_of_formats_lists_the_limits_that_have_no_effect() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "file-formats.md"
    section = page.read_text(encoding="utf-8").partition("### Limits that have no effect here")[2]
    rows = [line.split("|") for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    keys = {key.partition(":")[0] for row in rows for key in re.findall(r"`([^`]+)`", row[1])}
    aliases = {"isreadonly", "permissions", "subagents", "userinvokable", "timeout", "sandboxmode"}
    assert {folded(key) for key in keys} | aliases == set(remarks_module._LIMITS)


def test_an_unknown_key_is_remarked() -> None:
    assert remarks("allowed_hosts: [a]") == [
        ("allowed_hosts", "allowed_hosts: unknown key, which has no effect here")
    ]


def test_a_key_that_reading_has_reported_is_not_remarked_again() -> None:
    assert remarks("Model: opus", "tool: cursor") == []


def test_entries_of_tools_that_grant_nothing_are_remarked() -> None:
    assert [key for key, _ in remarks("tools: NotebookRead(src/**)", "disallowedTools: NotebookEdit(x)")] == [
        "tools",
        "disallowedTools",
    ]


@pytest.mark.parametrize(
    ("line", "is_remarked"),
    [
        ("tools: Task", True),
        ("tools: [Agent]", True),
        ("tools: Task(tester, writer)", True),
        ("tools: Task, Read", False),
        ("tools: Task, mcp__files", False),
        ("tools: '*'", False),
        ("tools: []", False),
        ("disallowedTools: Task", False),
    ],
)
def test_a_list_that_leaves_subagents_without_tools_is_remarked(line: str, is_remarked: bool) -> None:
    found = [message for _, message in remarks(line)]
    assert any("only delegation is allowed" in message for message in found) is is_remarked


@given(definitions)
def test_every_key_with_content_that_limits_elsewhere_is_remarked(definition: AgentDefinition) -> None:
    found = {remark.key for remark in remarks_of(definition)}
    mode = definition.permission_mode or ""
    limits = mode != "bypassPermissions" and mode.lower() not in ("", "false", "no", "off")
    assert ("permissionMode" in found) == limits


class TestShortNamesOfModels:
    @pytest.mark.parametrize(
        ("name", "model"),
        [
            ("default", None),
            ("Default", None),
            ("inherit", None),
            ("best", MODELS["opus"]),
            ("opusplan", MODELS["sonnet"]),
            ("opus[1m]", MODELS["opus"]),
            ("Sonnet [1M]", MODELS["sonnet"]),
            ("claude-opus-4-5[1m]", "claude-opus-4-5"),
            ("inherit[1m]", None),
            ("[1m]", None),
            ("fable", "claude-fable-5"),
        ],
    )
    def test_short_names_of_claude_code_never_reach_a_provider(self, name: str, model: str | None) -> None:
        assert model_of(name) == model

    def test_the_short_names_of_the_user_come_first(self) -> None:
        assert model_of("opus[1m]", {"opus": "a"}) == "a"
        assert model_of("opus[1m]", {"opus": "a", "Opus[1m]": "b"}) == "b"
        assert model_of("best", {"best": "c"}) == "c"

    @pytest.mark.parametrize(
        ("name", "remark"),
        [
            ("default", "as inherit does"),
            ("best", "best is read as opus"),
            ("opusplan", "there is no plan mode"),
            ("opus[1m]", "opus[1m] is read as opus; the larger context is not requested"),
        ],
    )
    def test_a_short_name_with_another_meaning_is_remarked(self, name: str, remark: str) -> None:
        ((key, message),) = remarks(f"model: {name}")
        assert key == "model"
        assert remark in message


def test_an_entry_that_permits_any_program_is_remarked_on() -> None:
    found = remarks("tools: Read, Bash(git log:*), Bash(npm:*)", "disallowedTools: Bash(git:*)")
    assert found == [("tools", "tools: Bash(npm:*) permits any program, as in: npm exec PACKAGE")]
