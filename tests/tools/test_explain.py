"""``explain``: whether a tool may be used or called, and which rule of which layer decides."""

from __future__ import annotations

import json
from typing import Any

import agents
import pytest
from agents import ShellTool, WebSearchTool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, ToolRulesMode, explain, rule_parameter
from kantan_agents.errors import (
    InvalidOptionError,
    InvalidToolRulesError,
    ToolInputError,
    ToolNotAllowedError,
    ToolParameterMaxLengthError,
    ToolParameterMinLengthError,
)
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.guards.check import check_call
from kantan_agents.tools.providers.providers import explicit_rules
from tests.distributions import ACME, RIVAL, Use


def add(left: int, right: int = 0) -> int:
    """Add."""
    return left + right


class TestLayers:
    def test_without_rules_a_tool_is_allowed(self) -> None:
        explained = explain("search")
        assert (explained.allowed, explained.rule, explained.layer) == (True, "no rule is about it", None)
        assert explained.error is None
        nothing: dict[str, Any] = {"allow": None, "deny": None, "params": {}}
        assert explained.layers == {"base": nothing, "explicit": nothing}
        assert explained.merged == nothing

    def test_the_provider_decides_if_no_other_layer_does(self, use: Use) -> None:
        use(ACME)
        refund = explain("refund")
        assert (refund.allowed, refund.rule, refund.layer) == (False, "deny: refund", "provider acme-shop")
        assert isinstance(refund.error, ToolNotAllowedError)
        search = explain("search")
        assert (search.allowed, search.rule, search.layer) == (True, "allow: search", "provider acme")
        assert list(search.layers) == [
            "base",
            "provider acme",
            "provider acme-mail",
            "provider acme-shop",
            "explicit",
        ]

    def test_a_tool_without_allow_entry_is_refused_by_the_layer_that_has_entries(self, use: Use) -> None:
        use(ACME)
        other = explain("other")
        assert (other.allowed, other.rule, other.layer) == (
            False,
            "allow has no entry for it",
            "provider acme",
        )
        assert explain("other", tool_rules={"allow": ["own"]}).layer == "explicit"
        allowed = explain("other", tool_rules=ToolRulesMode.ALLOW_ALL)
        assert (allowed.allowed, allowed.rule, allowed.layer) == (True, "allow: *", "explicit")

    def test_an_entry_in_several_layers_is_attributed_to_the_last_one(self, use: Use) -> None:
        use(ACME)
        assert explain("refund", tool_rules={"deny": ["refund"]}).layer == "explicit"
        denied = explain("search", tool_rules=ToolRulesMode.DENY_ALL)
        assert (denied.rule, denied.layer) == ("deny: *", "explicit")

    def test_the_deciding_layer_is_named_for_each_keyword(self, use: Use) -> None:
        use(ACME)
        rules = {"params": {"search": {"query": {"maxLength": 5}}}}
        short = explain("search", {"query": "x"}, tool_rules=rules)
        assert (short.rule, short.layer) == ("params: search.query.minLength", "provider acme")
        assert isinstance(short.error, ToolParameterMinLengthError)
        long = explain("search", {"query": "x" * 6}, tool_rules=rules)
        assert (long.rule, long.layer) == ("params: search.query.maxLength", "explicit")
        assert isinstance(long.error, ToolParameterMaxLengthError)
        assert long.merged["params"] == {"search": {"query": {"minLength": 2, "maxLength": 5}}}
        assert long.layers["explicit"]["params"] == rules["params"]
        assert explain("search", {"query": "x" * 5}, tool_rules=rules).allowed

    def test_the_later_of_two_providers_decides(self, use: Use) -> None:
        use(ACME, RIVAL)
        assert explain("search", {"query": "x" * 6}).layer == "provider rival"
        assert explain("search", {"query": "x" * 6}, tool_providers=["acme"]).allowed
        assert explain("refund", tool_providers=None).layers.keys() == {"base", "explicit"}

    def test_only_what_concerns_the_tool_is_shown(self) -> None:
        rules = {"allow": ["a", "b", "c*"], "deny": ["c"], "params": {"a": {"p": {"type": "string"}}}}
        assert explain("b", tool_rules=rules).merged == {"allow": ["b"], "deny": [], "params": {}}
        assert explain("c", tool_rules=rules).merged == {"allow": ["c*"], "deny": ["c"], "params": {}}
        assert explain("a", tool_rules=rules).merged["params"] == rules["params"]

    def test_the_argument_counts_and_the_context_does_not(self) -> None:
        context = {"tool_rules": {"deny": ["search"]}}
        assert not explain("search", context=context).allowed
        assert explain("search", context=context, tool_rules=ToolRulesMode.RECOMMENDED).allowed

    def test_mistakes_in_the_rules_are_reported(self) -> None:
        with pytest.raises(InvalidToolRulesError, match="deny: must be"):
            explain("search", tool_rules={"deny": "search"})


MAXIMUM = {"params": {"add": {"left": {"maximum": 3}}}}
GIT = {"allow": ["Bash(git:*)", "Bash(ls)"], "deny": ["Bash(git push:*)"]}


class TestArguments:
    @pytest.mark.parametrize("arguments", [{"left": 4}, '{"left": 4}'])
    @pytest.mark.parametrize("tool", ["add", add])
    def test_a_mapping_and_json_text_give_the_same_result(self, tool: Any, arguments: Any) -> None:
        explained = explain(tool, arguments, tool_rules=MAXIMUM)
        assert explained.rule == "params: add.left.maximum"
        assert explained.error is not None
        assert explained.error.code == "E17"

    def test_without_arguments_the_tool_is_explained(self) -> None:
        assert explain("add", tool_rules=MAXIMUM).allowed
        assert explain("add", tool_rules={"allow": ["add(1)"]}).rule == "allow: add(1)"

    @pytest.mark.parametrize(
        "arguments", ["[]", "4", "{", '{"left": 1, "left": 9}', '{"left": NaN}', '{"left": "\\ud800"}']
    )
    def test_arguments_that_are_not_a_json_object_are_part_of_the_explanation(
        self, use: Use, arguments: str
    ) -> None:
        explained = explain("add", arguments, tool_rules=MAXIMUM)
        assert not explained.allowed
        assert isinstance(explained.error, ToolInputError)
        assert explained.layer == "explicit"
        assert "E10] Tool input must be a JSON object\n  arguments: " in str(explained)
        use(ACME)
        assert explain("search", arguments, tool_rules=MAXIMUM).layer == "provider acme"
        assert explain("send", "[]", tool_rules={"deny": ["send(eve)"]}).layer == "explicit"

    def test_arguments_without_a_rule_are_not_parsed(self) -> None:
        # As in a run: without a rule, only the tool itself checks its arguments.
        assert explain("other", "[]", tool_rules=MAXIMUM).allowed
        assert explain("add", "[]", tool_rules={"deny": ["add"]}).rule == "deny: add"

    def test_declared_types_of_the_tool_are_checked(self) -> None:
        explained = explain(add, {"left": "9"}, tool_rules=MAXIMUM)
        assert (explained.rule, explained.layer) == ("params: add.left", "explicit")
        assert explained.error is not None
        assert explained.error.code == "E11"
        assert explain("add", {"left": "9"}, tool_rules=MAXIMUM).allowed  # a name declares nothing

    @given(
        arguments=st.sampled_from(["{}", "[]", "", '{"left": 1}', '{"left": 5}', '{"text": "git x"}']),
        rules=st.fixed_dictionaries(
            {},
            optional={
                "allow": st.sampled_from(["*", [], ["add"], ["add(git:*)"], ["other"]]),
                "deny": st.sampled_from(["*", [], ["a*"], ["add(git x)"]]),
                "params": st.just(MAXIMUM["params"]),
            },
        ),
    )
    async def test_the_explanation_agrees_with_the_guard(self, arguments: str, rules: dict[str, Any]) -> None:
        tool = agents.function_tool(add)
        explained = explain(tool, arguments, tool_rules=rules)
        decision = await check_call(explicit_rules(None, rules), facts_of(tool), arguments)
        assert (explained.allowed, explained.rule) == (decision.allowed, decision.rule)
        assert str(explained.error) == str(decision.error)
        assert (explained.layer is None) == (decision.key is None)


class TestShortForm:
    @pytest.mark.parametrize(
        ("command", "allowed", "rule"),
        [
            ("git status", True, "allow: Bash(git:*)"),
            ("ls", True, "allow: Bash(ls)"),
            ("ls -l", False, "allow has no entry for it"),
            ("gitk", False, "allow has no entry for it"),
            ("git push --force", False, "deny: Bash(git push:*)"),
            ("git status && git push", False, "deny: Bash(git push:*)"),
            ("git status && rm -rf /", False, "allow has no entry for it"),
        ],
    )
    def test_a_call_is_decided_by_its_entry(self, command: str, allowed: bool, rule: str) -> None:
        explained = explain("Bash", {"command": command}, tool_rules=GIT)
        assert (explained.allowed, explained.rule, explained.layer) == (allowed, rule, "explicit")

    def test_the_declared_parameter_is_matched(self, use: Use) -> None:
        use(ACME)
        rules = {"deny": ["send(eve)"]}
        assert explain("send", {"text": "eve", "address": "bob"}, tool_rules=rules).allowed
        denied = explain("send", {"text": "bob", "address": "eve"}, tool_rules=rules)
        assert denied.rule == "deny: send(eve)"

    def test_the_declared_parameter_of_a_function_is_matched(self) -> None:
        @rule_parameter("right")
        def note(left: str, right: str) -> str:
            """Note."""
            return left + right

        assert not explain(note, {"left": "a", "right": "b"}, tool_rules={"deny": ["note(b)"]}).allowed
        assert explain(note, {"left": "b", "right": "a"}, tool_rules={"deny": ["note(b)"]}).allowed

    def test_for_a_tool_name_the_first_text_argument_is_matched(self) -> None:
        arguments = {"times": 2, "command": "ls", "directory": "git status"}
        assert explain("Bash", arguments, tool_rules=GIT).rule == "allow: Bash(ls)"
        assert not explain("Bash", {"times": 2}, tool_rules=GIT).allowed


class TestTools:
    def test_a_hosted_tool_also_has_its_other_names(self) -> None:
        explained = explain(WebSearchTool(), tool_rules={"deny": ["web_search_preview"]})
        assert (explained.tool, explained.rule) == ("web_search", "deny: web_search_preview")

    def test_shell_commands_are_matched_one_by_one(self) -> None:
        shell = ShellTool(executor=lambda request: "")
        arguments = {"commands": ["ls", "rm -rf /"]}
        assert explain(shell, arguments, tool_rules={"deny": ["shell(rm:*)"]}).rule == "deny: shell(rm:*)"
        assert explain(shell, arguments, tool_rules={"allow": ["shell(ls)"]}).allowed is False

    def test_a_declared_parameter_that_is_missing_is_an_error(self) -> None:
        with pytest.raises(InvalidOptionError, match="E75"):
            explain(rule_parameter("none")(agents.function_tool(add)))


class TestText:
    def test_a_refusal_as_text(self, use: Use) -> None:
        use(ACME)
        explained = explain(
            "search",
            {"query": "x" * 9},
            tool_rules={"deny": ["é*"], "params": {"search": {"query": {"maxLength": 5}}}},
            tool_providers=["acme"],
        )
        assert str(explained) == (
            "search: denied\n"
            "  rule: params: search.query.maxLength, in explicit\n"
            "  error: [kantan-agents][E14] Tool parameter maxLength mismatch: search.query\n"
            "  base: says nothing about it\n"
            '  provider acme: {"allow": ["search"], '
            '"params": {"search": {"query": {"minLength": 2, "maxLength": 20}}}}\n'
            '  explicit: {"params": {"search": {"query": {"maxLength": 5}}}}\n'
            '  merged: {"allow": ["search"], '
            '"params": {"search": {"query": {"minLength": 2, "maxLength": 5}}}}'
        )

    def test_an_allow_list_without_the_tool_is_shown(self) -> None:
        text = str(explain("search", tool_rules={"allow": ["other"]}))
        assert "rule: allow has no entry for it, in explicit\n" in text
        assert '  explicit: {"allow": []}\n' in text

    def test_a_permission_as_text(self) -> None:
        assert str(explain("été")).splitlines()[:2] == ["été: allowed", "  rule: no rule is about it"]

    @given(name=st.text(min_size=1), entry=st.text())
    def test_each_fact_is_one_line_whatever_the_names(self, name: str, entry: str) -> None:
        rules = {"params": {"tool": {"p": {"enum": [entry]}}}}
        assert len(str(explain(name, tool_rules=rules)).splitlines()) == 5
        text = str(explain("tool", {"p": None}, tool_rules=rules))
        merged = text.rpartition("\n")[2].removeprefix("  merged: ")
        assert json.loads(merged) == rules


class TestAgent:
    def test_an_agent_explains_its_own_tools_and_rules(self, use: Use) -> None:
        use(ACME)
        agent = Agent("a", "b", tools=[add])
        assert agent.explain_tool("refund").layer == "provider acme-shop"
        assert not agent.explain_tool("add").allowed  # the provider's allow list has no entry for it
        context = {"tool_rules": {"allow": ["add"], "params": {"add": {"left": {"maximum": 3}}}}}
        assert agent.explain_tool("add", context=context).allowed
        text = agent.explain_tool("add", '{"left": "9"}', context)
        assert text.error is not None
        assert text.error.code == "E11"  # the tool declares a number
        assert agent.explain_tool("search", {"query": "x"}).rule == "params: search.query.minLength"
        denied = agent.explain_tool(
            "send", {"text": "", "address": "eve"}, {"tool_rules": {"deny": ["send(eve)"]}}
        )
        assert denied.rule == "deny: send(eve)"

    @pytest.mark.parametrize(
        ("denied", "rule"),
        [("bash", "deny: bash"), ("Bash", "deny: Bash"), ("Bash(rm:*)", "deny: Bash(rm:*)")],
    )
    def test_the_denied_tools_of_a_file_are_explained(self, denied: str, rule: str) -> None:
        definition = AgentDefinition(name="a", description="b", system_prompt="x", disallowed_tools=[denied])

        @agents.function_tool
        def bash(command: str) -> str:
            return command

        agent = Agent.from_definition(definition, tools=[bash, add])
        explained = agent.explain_tool("bash", {"command": "rm -r x"})
        assert (explained.allowed, explained.rule, explained.layer) == (False, rule, "definition")
        assert explained.layers["definition"]["deny"] == [denied]
        assert agent.explain_tool("add").allowed

    def test_any_other_tool_can_be_explained(self) -> None:
        agent = Agent("a", "b")
        assert agent.explain_tool(add).allowed
        assert not agent.explain_tool(
            "mcp__github__push", context={"tool_rules": {"deny": ["mcp__*"]}}
        ).allowed

    def test_the_explanation_agrees_with_a_run(self, use: Use) -> None:
        use(ACME)
        agent = Agent("a", "b", tool_providers=["acme-shop"])
        assert not agent.explain_tool("refund").allowed
        assert agent.explain_tool("search").allowed
