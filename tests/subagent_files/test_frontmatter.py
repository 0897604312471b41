"""Files that are valid YAML (spec subagents, "Agent 定义格式", "解析 Agent 文件", "格式兼容性")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kantan_agents import AgentDefinition
from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from kantan_agents.subagent_files.frontmatter import nodes

EXAMPLE = """\
---
name: code-reviewer
description: "Reviews code for best practices and potential issues"
tools: ["FileRead", "Grep", "Bash"]
model: "claude-sonnet"
---

You are an expert code reviewer. When reviewing code:
1. Check for security vulnerabilities
2. Look for performance issues
"""


def agent(*lines: str, prompt: str = "P\n") -> AgentDefinition:
    return AgentDefinition.loads("\n".join(["---", "name: a", "description: b", *lines, "---", "", prompt]))


def refused(*lines: str) -> InvalidDefinitionError:
    with pytest.raises(InvalidDefinitionError) as raised:
        agent(*lines)
    return raised.value


def unreadable(content: str | bytes) -> AgentFileError:
    with pytest.raises(AgentFileError) as raised:
        AgentDefinition.loads(content)
    return raised.value


def test_the_example_of_the_specification() -> None:
    """Scenario: Agent 定义示例, 基本结构, 提取 frontmatter, 提取提示词."""
    read = AgentDefinition.loads(EXAMPLE)

    assert read.name == "code-reviewer"
    assert read.description == "Reviews code for best practices and potential issues"
    assert read.tools == ("FileRead", "Grep", "Bash")
    assert read.model == "claude-sonnet"
    assert read.system_prompt == EXAMPLE.split("---\n\n")[1]
    assert read.notes == ()


def test_name_and_description_must_be_there() -> None:
    """Scenario: 必需字段, 验证必需字段."""
    with pytest.raises(InvalidDefinitionError) as raised:
        AgentDefinition.loads("---\ntools: Read\n---\n", path=Path("x.md"))

    assert raised.value.problems == ("name: is missing", "description: is missing")
    assert (raised.value.path, raised.value.line) == ("x.md", 1)


@pytest.mark.parametrize("value", ["", "~", "null"])
def test_a_field_of_null_is_missing(value: str) -> None:
    with pytest.raises(InvalidDefinitionError, match="name: is missing"):
        AgentDefinition.loads(f"---\nname: {value}\ndescription: b\n---\n")
    assert agent(f"model: {value}").model is None


ALL_OF_THEM: Any = "*"


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("'*'", ALL_OF_THEM),
        ("all", ALL_OF_THEM),
        ("ALL", ALL_OF_THEM),
        ("All tools", ALL_OF_THEM),
        ("[All tools]", ALL_OF_THEM),
        ("'`Read`, \u201cGrep\u201d'", ("Read", "Grep")),
        ("", ()),
        ("~", ()),
        ("''", ()),
        ("[]", ()),
        ("[~]", ()),
        ("Read", ("Read",)),
        ("Read, Grep,, Read", ("Read", "Grep")),
        ("Agent(a, b), Bash(git diff:*), mcp__x__*", ("Agent(a, b)", "Bash(git diff:*)", "mcp__x__*")),
        ("Read Grep Bash(git diff:*)", ("Read", "Grep", "Bash(git diff:*)")),
        ("[Read, 'Bash(git diff:*)', 'A, B']", ("Read", "Bash(git diff:*)", "A", "B")),
        ("[My Tool]", ("My Tool",)),
        ("\n  - Read\n  - Grep", ("Read", "Grep")),
        ("\n- Read\n- Grep", ("Read", "Grep")),
        (">\n  Read,\n  Grep", ("Read", "Grep")),
    ],
)
@pytest.mark.parametrize("key", ["tools", "allowedTools", "allowed-tools", "allowed_tools"])
def test_the_tools_of_a_file(key: str, written: str, tools: Any) -> None:
    """Scenario: 工具过滤."""
    assert agent(f"{key}: {written}").tools == tools


def test_without_tools_all_are_allowed() -> None:
    assert agent().tools == "*"


def test_two_lists_of_tools_allow_what_both_allow() -> None:
    read = agent("tools: Read, Grep", "allowedTools: [Grep, Bash]", "allowed_tools: all")

    assert read.tools == ("Grep",)
    assert "allowed" in str(read.notes[0])
    assert not read.is_repaired


def test_all_tools_except_one_never_means_all() -> None:
    assert "tools" in str(refused("tools: All tools except Bash"))


@pytest.mark.parametrize("line", ["tools: {Read: true}", "tools:\n  - Bash: git", "tools: [[Read]]"])
def test_tools_that_are_not_names_are_refused(line: str) -> None:
    error = refused(line)

    assert error.problems[0].startswith("tools: ")
    assert error.line == 4


def test_several_lists_of_denied_tools_are_combined() -> None:
    read = agent(
        "disallowedTools: Bash", "disallowed-tools: [Write]", "disallowed_tools: Edit Bash", "deniedTools: x"
    )

    assert read.disallowed_tools == ("Bash", "Write", "Edit", "x")
    assert agent("disallowedTools: all").disallowed_tools == ("*",)
    assert agent("disallowedTools:").disallowed_tools == ()


def test_the_model_of_a_file() -> None:
    """Scenario: 模型配置."""
    assert agent("model: opus").model == "opus"
    assert agent("model_name: quick").model == "quick"
    assert agent("model: inherit").model == "inherit"
    assert agent().model is None


def test_model_overrides_model_name_and_both_are_written() -> None:
    read = agent("model_name: quick", "model: opus")

    assert (read.model, read.extra) == ("opus", {"model_name": "quick"})
    assert AgentDefinition.loads(read.dump()) == read


def test_the_context_of_a_file() -> None:
    """Scenario: 上下文注入."""
    assert agent("context: {style: brief, depth: 2}").context == {"style": "brief", "depth": 2}
    assert agent("context: Some text").context == "Some text"
    assert agent("context: 5").context == "5"
    assert agent("context: [a, {b: null}]").context == ["a", {"b": None}]
    assert "'result'" in str(refused("context: {result: 1}"))


def test_an_error_names_path_line_and_problem() -> None:
    """Scenario: 处理解析错误."""
    with pytest.raises(AgentFileError, match=r"x\.md:3: its frontmatter is not valid YAML") as raised:
        AgentDefinition.loads("---\nfoo: 1\nbar: [\n---\n", path=Path("x.md"))

    assert (raised.value.path, raised.value.line) == ("x.md", 3)


def test_the_c_parser_is_used_if_available() -> None:
    """Scenario: 依赖解析库."""
    assert nodes._Loader is getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def test_the_pure_python_parser_gives_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = AgentDefinition.loads(EXAMPLE)
    monkeypatch.setattr(nodes, "_Loader", yaml.SafeLoader)

    assert AgentDefinition.loads(EXAMPLE) == fast
    assert agent("tools: *").is_repaired
    assert unreadable('---\nx: "\\UFFFFFFFF"\n---\n').line


def test_a_file_of_claude_code() -> None:
    """Scenario: Claude Code Agent 可加载, Claude 兼容性."""
    read = agent(
        "tools: Read, Grep, Bash(git diff:*)",
        "disallowedTools: Write",
        "model: sonnet",
        "color: cyan",
        "permissionMode: acceptEdits",
        "maxTurns: 12",
        "skills: [pdf, xlsx]",
        "mcpServers:\n  - github\n  - local: {command: run, args: [-v]}",
        "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: command, command: ./check.sh}]",
        "memory: project",
        "effort: high",
        "initialPrompt: Begin.",
    )

    assert read.permission_mode == "acceptEdits"
    assert (read.max_turns, read.skills, read.memory) == (12, ("pdf", "xlsx"), "project")
    assert read.mcp_servers == ["github", {"local": {"command": "run", "args": ["-v"]}}]
    assert read.hooks["PreToolUse"][0]["hooks"][0]["command"] == "./check.sh"
    assert (read.effort, read.initial_prompt, read.extra) == ("high", "Begin.", {})


def test_a_file_of_kode() -> None:
    """Scenario: TS 版本 Agent 可加载."""
    read = agent('tools: ["*"]', "model_name: main", "color: red", "category: review", "version: 1.10")

    assert (read.tools, read.model, read.color) == ("*", "main", "red")
    assert (read.category, read.version) == ("review", "1.10")


@pytest.mark.parametrize(
    "value", ["yes", "1.10", "2024-01-01", "0x1f", "true", "on", "1_000", "12:30:45", ".inf"]
)
def test_texts_stay_text(value: str) -> None:
    read = AgentDefinition.loads(f"---\nname: {value}\ndescription: {value}\nversion: {value}\n---\n")

    assert (read.name, read.description, read.version) == (value, value, value)


def test_unknown_keys_keep_their_values_and_are_written_back() -> None:
    values = (
        "{a: 1, b: -2.5, c: true, d: null, e: yes, f: 010, g: 2024-01-01, h: '1', i: 0x1f, j: 1e3, 1: [x]}"
    )
    read = agent(f"team: {values}", "'yes': no")

    assert read.extra["team"] == {
        "a": 1,
        "b": -2.5,
        "c": True,
        "d": None,
        "e": "yes",
        "f": "010",
        "g": "2024-01-01",
        "h": "1",
        "i": 31,
        "j": "1e3",
        "1": ["x"],
    }
    assert read.extra["yes"] == "no"
    assert AgentDefinition.loads(read.dump()) == read


@pytest.mark.parametrize("written", ["0", "-1", "many", "1.5", "[3]", "9999999999999"])
def test_max_turns_is_a_whole_number_of_at_least_one(written: str) -> None:
    assert refused(f"maxTurns: {written}").line == 4


def test_max_turns_may_be_a_text_of_digits() -> None:
    assert agent("maxTurns: '5'").max_turns == 5


def test_a_text_field_with_another_type_is_refused() -> None:
    error = refused("memory: [a]", "color: {a: b}", "model: {a: b}")

    assert error.problems == (
        "memory: must be text, not a list",
        "color: must be text, not a mapping",
        "model: must be text, not a mapping",
    )


@pytest.mark.parametrize(
    ("written", "model", "used"),
    [
        ("[opus, haiku]", "opus", "the first is used, opus"),
        ("\n  - gpt-6.1-terra\n  - opus", "gpt-6.1-terra", "the first is used, gpt-6.1-terra"),
        ("[~, opus]", "opus", "the first is used, opus"),
        ("[]", None, "it is empty, so the default model is used"),
    ],
)
def test_a_list_of_models_loses_no_agent_and_its_first_is_used(
    written: str, model: str | None, used: str
) -> None:
    read = agent(f"model: {written}")

    assert read.model == model
    assert [(note.line, note.message) for note in read.notes] == [(4, f"model: a list of models; {used}")]
    assert not read.is_repaired
    assert AgentDefinition.loads(read.dump()) == read


def test_a_list_of_models_that_is_not_closed_is_repaired() -> None:
    assert agent("model: [opus, haiku").model == "opus"


def test_the_last_of_two_equal_keys_is_used_with_a_warning() -> None:
    read = agent("model: opus", "model: haiku", "x: 1", "x: 2")

    assert (read.model, read.extra) == ("haiku", {"x": 2})
    assert [(note.line, note.is_repair) for note in read.notes] == [(5, False), (7, False)]


@pytest.mark.parametrize("written", ['"one\\\\ntwo"', "'one\\ntwo'", "one\\ntwo", '"one\\ntwo"'])
def test_a_literal_backslash_n_in_a_description_is_a_newline(written: str) -> None:
    assert AgentDefinition.loads(f"---\nname: a\ndescription: {written}\n---\n").description == "one\ntwo"


def test_a_block_scalar_keeps_its_backslashes_and_loses_its_last_line_end() -> None:
    text = "---\nname: a\ndescription: |\n  C:\\new\n\n  line\ninitialPrompt: >-\n  one\n  two\n---\n"

    assert AgentDefinition.loads(text).description == "C:\\new\n\nline"
    assert AgentDefinition.loads(text).initial_prompt == "one two"


@pytest.mark.parametrize("front", ["- a\n- b\n", "just a text\n"])
def test_a_frontmatter_that_is_not_a_mapping_is_refused(front: str) -> None:
    with pytest.raises(InvalidDefinitionError, match="not a mapping") as raised:
        AgentDefinition.loads(f"---\n{front}---\n")
    assert raised.value.line == 2
