"""The tool rules for the tool lists of a file."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import pytest
from agents import HostedMCPTool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidDefinitionError
from kantan_agents.subagent_files import AgentDefinition, grants_of
from kantan_agents.tool_rules import NO_RULES, ToolFacts, ToolRules, decide_call
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.server_names import hosted_mcp_facts


def rules(*tools: str, denied: tuple[str, ...] = ()) -> ToolRules:
    return grants_of(AgentDefinition("a", "does a", tools=tools or "*", disallowed_tools=denied)).rules


def allows(granted: ToolRules, tool: str, argument: str = "") -> bool:
    server, _, called = tool.removeprefix("mcp__").rpartition("__")
    names = hosted_mcp_facts(server, called).names if tool.startswith("mcp__") and server else (tool,)
    return decide_call(granted, ToolFacts(names, parameter="value"), {"value": argument}).allowed


def test_all_tools_give_no_rule() -> None:
    assert rules().permits_all


def test_an_empty_list_allows_no_tool() -> None:
    granted = grants_of(AgentDefinition("a", "does a", tools=())).rules
    assert not allows(granted, "Read")


@pytest.mark.parametrize(
    ("entry", "tool", "granted", "refused"),
    [
        (
            "Bash(git diff:*)",
            "Bash",
            ["git diff", "git diff HEAD"],
            ["git push", "git diff; rm x", "git difftool"],
        ),
        ("Bash(git diff *)", "Bash", ["git diff", "git diff HEAD"], ["git push", "git diff; rm x"]),
        ("Bash(ls)", "Bash", ["ls"], ["ls -l", "cat"]),
        ("Bash(*)", "Bash", ["anything"], []),
        ("Task(a, b)", "Task", ["a", "b"], ["c", "a, b", ""]),
        ("Agent(a, b)", "Task", ["a", "b"], ["c"]),
        ("Agent(a, b)", "Agent", ["a", "b"], ["c"]),
        ("Agent", "Task", ["anyone"], []),
        ("Task", "Agent", ["anyone"], []),
        ("mcp__github", "mcp__github__search", ["x"], []),
        ("mcp__github", "mcp__gitlab__search", [], ["x"]),
        ("mcp__github__*", "mcp__github__search", ["x"], []),
        ("mcp__github__search", "mcp__github__delete", [], ["x"]),
        ("Read", "read", [], ["x"]),
    ],
)
def test_an_entry_grants_its_calls(entry: str, tool: str, granted: list[str], refused: list[str]) -> None:
    allowed = rules(entry)
    assert [argument for argument in granted if not allows(allowed, tool, argument)] == []
    assert [argument for argument in refused if allows(allowed, tool, argument)] == []
    denied = rules(denied=(entry,))
    assert [argument for argument in granted if allows(denied, tool, argument)] == []


@pytest.mark.parametrize(
    "entry",
    [
        "Bash(rm * -rf)",
        "Bash(",
        "Bash()",
        ")",
        "(x)",
        "Task()",
        "Read(../outside/**)",
        "WebFetch(evil.example)",
        "NotebookEdit(docs)",
        "bash(key:value)",
        "Agent(a, )",
        "Bash(a:*) x",
    ],
)
def test_an_unclear_entry_grants_nothing_and_denies_the_whole_tool(entry: str) -> None:
    tool = re.split(r"[()]", entry)[0].strip() or "Bash"
    try:
        allowed = grants_of(AgentDefinition("a", "does a", tools=(entry,)))
    except InvalidDefinitionError:
        pass  # a definition that cannot be loaded grants nothing
    else:
        assert not allows(allowed.rules, tool, "a")
        assert "it grants nothing" in allowed.remarks[0]
    try:
        denied = grants_of(AgentDefinition("a", "does a", disallowed_tools=(entry,)))
    except InvalidDefinitionError:
        return
    assert not allows(denied.rules, tool, "a")
    assert "is denied entirely" in denied.remarks[0]


@given(
    st.lists(st.text(min_size=1, max_size=12), max_size=5),
    st.lists(st.text(min_size=1, max_size=12), max_size=5),
    st.text(alphabet="abRead(*)_ ", min_size=1, max_size=8),
)
def test_any_texts_give_rules_and_a_deny_wins(tools: list[str], denied: list[str], tool: str) -> None:
    try:
        definition = AgentDefinition("a", "does a", tools=tuple(tools), disallowed_tools=tuple(denied))
    except InvalidDefinitionError:
        return
    granted = grants_of(definition).rules
    plain = [entry for entry in definition.disallowed_tools if "(" not in entry and ")" not in entry]
    assert not any(allows(granted, entry) for entry in plain)
    if "*" not in definition.tools and not any(set(entry) & set("*?[(") for entry in definition.tools):
        entries = {*definition.tools, "Task", "Agent"}
        assert not allows(granted, tool) or tool in entries or tool.startswith("mcp__")


def hosted(label: str) -> HostedMCPTool:
    return HostedMCPTool(
        tool_config={"type": "mcp", "server_label": label, "server_url": "http://127.0.0.1/"}
    )


class TestDeniedNamesInOtherSpellings:
    @pytest.mark.parametrize(
        ("entry", "tool"),
        [
            ("Bash", "bash"),
            ("WebFetch", "web_fetch"),
            ("web_fetch", "WebFetch"),
            ("mcp__git_hub__createIssue", "mcp__GitHub__create_issue"),
            ("bash", "Bash"),
            ("WEB-search", "web_search"),
            ("web.search", "web-search"),
            ("Web*", "web_fetch"),
            ("[A-C]ash", "bash"),
            ("task", "Task"),
            ("AGENT", "Task"),
            ("mcp__github", "mcp__GitHub__search"),
            ("MCP__GITHUB", "mcp__github__search"),
            ("mcp__git.hub", "mcp__git_hub__search"),
            ("mcp__GitHub__Issues", "mcp__GitHub__Issues"),
            ("mcp__GitHub__Issues", "mcp__GitHub__Issues__search"),
            ("mcp__github__*", "mcp__GitHub__search"),
        ],
    )
    def test_a_denial_ignores_case_and_separators(self, entry: str, tool: str) -> None:
        assert not allows(rules(denied=(entry,)), tool)

    @pytest.mark.parametrize("tool", ["bash2", "rebash", "bash_all", "mcp__bash__run"])
    def test_a_denial_covers_no_other_tool(self, tool: str) -> None:
        assert allows(rules(denied=("Bash",)), tool)
        assert allows(rules(denied=("mcp__github",)), "mcp__github_enterprise__search")
        assert allows(rules(denied=("web_*",)), "website")

    def test_a_denied_call_ignores_the_case_of_the_tool_only(self) -> None:
        denied = rules(denied=("Bash(rm:*)",))
        assert not allows(denied, "bash", "rm -r x")
        assert allows(denied, "bash", "ls")
        assert [call.entry for call in denied.denied_calls(("bash",))] == ["Bash(rm:*)"]

    def test_the_deciding_entry_is_shown_as_the_file_writes_it(self) -> None:
        denied = rules(denied=("Web-*", "Bash"))
        assert (denied.denying(("bash",)), denied.denying(("web_fetch",))) == ("Bash", "Web-*")
        assert denied.about(("bash",))["deny"] == ["Bash"]

    @pytest.mark.parametrize("entry", ["Bash", "Web-*", "mcp__GitHub__Issues"])
    def test_an_allowed_name_is_compared_exactly(self, entry: str) -> None:
        granted = rules(entry)
        for tool in ("bash", "web_fetch", "mcp__github__issues"):
            assert not allows(granted, tool)
        one_tool = hosted_mcp_facts("GitHub", "Issues__search")  # not of a server `GitHub__Issues`
        assert not decide_call(granted, one_tool, {}).allowed

    def test_copies_of_the_rules_still_ignore_case(self) -> None:
        denied = rules(denied=("Bash",))
        for copied in (pickle.loads(pickle.dumps(denied)), copy.deepcopy(denied), NO_RULES.merge(denied)):
            assert not allows(copied, "bash")
        merged = ToolRules.parse({"deny": ["Read"]}).merge(denied)
        assert not allows(merged, "bash")

    @given(
        st.text(st.sampled_from("aB9_-.: /é"), min_size=1, max_size=12),
        st.sampled_from([str, str.lower, str.upper, str.title]),
        st.text(st.sampled_from("aB_-"), min_size=1, max_size=5),
    )
    def test_every_server_is_denied_by_its_name_as_claude_code_writes_it(
        self, label: str, spell: Any, tool: str
    ) -> None:
        name = spell(re.sub(r"[^a-zA-Z0-9_-]", "_", label))
        try:
            denied = rules(denied=(f"mcp__{name}",))
        except InvalidDefinitionError:
            return
        assert not decide_call(denied, hosted_mcp_facts(label, tool), {}).allowed
        assert not decide_call(denied, facts_of(hosted(label)), {}).allowed
