"""A delegation only narrows permissions: a child may only do what every agent above it may do."""

from __future__ import annotations

from typing import Any

import agents
import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, get_context_with_tool_rules, task_tool
from kantan_agents.agent.delegation.chain import DelegationCeiling
from kantan_agents.subagent_files import AgentDefinition, grants_of
from kantan_agents.testing import strategies
from kantan_agents.tool_rules import DEFINITION, EXPLICIT, RuleLayers, ToolFacts, ToolRules, decide_call
from tests.agent.delegation.cast import Cast, boss, definition, delegate, read, say, use, write

E8 = "[kantan-agents][E8] Tool is not allowed: "

ENTRIES = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "a(git diff:*)",
        "a(git:*)",
        "b(ls)",
        "c(*)",
        "mcp__x",
        "mcp__x__*",
        "Task",
        "Agent(one, two)",
        "a*",
    ]
)
FILTERS = st.one_of(st.just("*"), st.lists(ENTRIES, max_size=4).map(tuple))
DEFINITIONS = st.builds(
    lambda tools, denied: definition("any", tools=tools, disallowed_tools=denied),
    FILTERS,
    st.lists(ENTRIES, max_size=2).map(tuple),
)
CALLS = st.tuples(
    st.sampled_from(["a", "b", "c", "mcp__x__t", "Task"]),
    st.sampled_from(["git diff HEAD", "git push", "ls", "one", "two", "", "git diff; rm x"]),
)


@attrs.frozen
class ParentRules:
    """A delegating agent, as far as the ceiling uses it."""

    name: str
    layers: RuleLayers

    def rules(self) -> RuleLayers:
        return self.layers


def is_allowed(layers: RuleLayers, tool: str, argument: str) -> bool:
    facts = ToolFacts((tool,), parameter="value")
    return all(decide_call(rules, facts, {"value": argument}).allowed for rules in layers.rule_sets)


@given(
    st.lists(
        st.tuples(DEFINITIONS, strategies.tool_rules(), strategies.tool_rules()), min_size=2, max_size=4
    ),
    st.lists(CALLS, min_size=1, max_size=6),
)
def test_a_child_may_only_do_what_every_agent_above_it_may_do(levels: Any, calls: Any) -> None:
    chain: list[RuleLayers] = []
    for number, (file, explicit, call) in enumerate(levels):
        own = RuleLayers((("base", ToolRules()),)).with_layer(EXPLICIT, ToolRules.parse(explicit))
        own = own.with_limits((DEFINITION, grants_of(file).rules))
        if chain:
            above: Any = ParentRules(f"level{number - 1}", chain[-1])
            own = DelegationCeiling(above, ToolRules.parse(call)).over(own)
        chain.append(own)
    for tool, argument in calls:
        answers = [is_allowed(layers, tool, argument) for layers in chain]
        assert answers == sorted(answers, reverse=True)
        for (file, _, _), allowed in zip(levels, answers, strict=True):
            alone = RuleLayers(limits=((DEFINITION, grants_of(file).rules),))
            assert not allowed or is_allowed(alone, tool, argument)


TOOLS = ("read", "write", "bash")


@settings(max_examples=15)
@given(
    st.lists(st.one_of(st.just("*"), st.sets(st.sampled_from(TOOLS))), min_size=1, max_size=3),
    st.sets(st.sampled_from(TOOLS), max_size=1),
    st.sets(st.sampled_from(TOOLS), max_size=1),
)
async def test_each_level_of_a_run_has_only_tools_that_all_levels_above_have(
    filters: Any, denied: Any, by_call: Any
) -> None:
    names = [f"level{number}" for number in range(1, len(filters) + 1)]
    files = [
        definition(name, tools="*" if tools == "*" else (*sorted(tools), "Task"))
        for name, tools in zip(names, filters, strict=True)
    ]
    scripts: dict[str, list[Any]] = {}
    for name, after in zip(["boss", *names], [*names, None], strict=True):
        scripts[name] = [*([delegate(after)] if after else []), say(f"{name} done")]
    cast = Cast(**scripts)
    agent = boss(cast, *files, task={"tool_rules": {"deny": sorted(by_call)}})
    await agent.run_async("Go", get_context_with_tool_rules({"deny": sorted(denied)}))
    left = set(TOOLS) - denied
    assert set(cast.visible_tools("boss")) - {"Task"} == left
    left -= by_call
    for name, tools in zip(names, filters, strict=True):
        left &= set(TOOLS) if tools == "*" else tools
        assert set(cast.visible_tools(name)) - {"Task"} == left


async def test_a_call_pattern_does_not_grant_the_whole_tool() -> None:
    calls = ["git diff HEAD", "git push", "git diff; rm -rf x"]
    cast = Cast(
        boss=[delegate("differ"), say("done")],
        differ=[*(use("bash", f"t{n}", command=command) for n, command in enumerate(calls)), say("ok")],
    )
    await boss(cast, definition("differ", tools=("bash(git diff:*)",))).run_async("Go")
    allowed, *refused = cast.results("differ")
    assert allowed == "ran git diff HEAD"
    assert all(answer.startswith(f"{E8}bash") for answer in refused)
    assert refused[0].endswith("Calls that are allowed: bash(git diff:*).")


async def test_a_file_cannot_grant_more_than_the_parent_has() -> None:
    cast = Cast(
        boss=[delegate("lead"), say("done")],
        lead=[delegate("worker"), say("led")],
        worker=[use("bash", "t1", command="git push"), use("bash", "t2", command="git diff"), say("ok")],
    )
    lead = definition("lead", tools=("bash(git diff:*)", "Task"))
    await boss(cast, lead, definition("worker", tools=("bash",))).run_async("Go")
    refused, allowed = cast.results("worker")
    assert refused.startswith(f"{E8}bash")
    assert allowed == "ran git diff"


async def test_a_context_below_cannot_lift_a_deny_above() -> None:
    async def lift(context: agents.RunContextWrapper[Any]) -> str:
        """Allow everything."""
        context.context["tool_rules"] = {"allow": "*", "deny": None, "params": {}}
        return "lifted"

    cast = Cast(
        boss=[delegate("worker"), say("done")],
        worker=[use("lift"), use("write", "t2", path="a"), say("ok")],
    )
    tools = [agents.function_tool(lift), read, write, task_tool([definition("worker")])]
    agent = Agent("boss", "You are boss.", model=cast, tools=tools)
    await agent.run_async("Go", get_context_with_tool_rules({"deny": ["write"]}))
    assert cast.visible_tools("worker", 0) == ["lift", "read"]
    assert cast.visible_tools("worker", 1) == ["lift", "read"]
    assert cast.results("worker")[1].startswith(f"{E8}write")


async def test_a_deny_added_to_the_parent_during_the_run_applies_to_the_child() -> None:
    context = get_context_with_tool_rules({"deny": []})

    def deny_it() -> str:
        """Deny the tool during the run, as an operator would."""
        context["tool_rules"]["deny"].append("write")
        return "denied"

    cast = Cast(
        boss=[delegate("worker"), say("done")],
        worker=[use("write", "t1", path="a"), use("deny_it", "t2"), use("write", "t3", path="b"), say("ok")],
    )
    tools = [deny_it, write, task_tool([definition("worker")])]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go", context)
    first, _, second = cast.results("worker")
    assert first == "a written"
    assert second.startswith(f"{E8}write")


async def test_rules_of_the_delegation_tool_apply_at_all_levels_below() -> None:
    cast = Cast(
        boss=[delegate("lead"), say("done")],
        lead=[delegate("worker"), say("led")],
        worker=[use("write", path="a"), say("ok")],
    )
    await boss(
        cast, definition("lead"), definition("worker"), task={"tool_rules": {"deny": ["write"]}}
    ).run_async("Go")
    assert cast.visible_tools("worker") == ["read", "bash"]
    assert cast.results("worker")[0].startswith(f"{E8}write")


async def test_parameter_rules_above_apply_below() -> None:
    rules = {"params": {"read": {"path": {"pattern": "^/public/"}}}}
    cast = Cast(
        boss=[delegate("reader"), say("done")],
        reader=[use("read", "t1", path="/etc/passwd"), use("read", "t2", path="/public/a"), say("ok")],
    )
    await boss(cast, definition("reader")).run_async("Go", get_context_with_tool_rules(rules))
    refused, allowed = cast.results("reader")
    assert "[E15]" in refused
    assert allowed == "text of /public/a"


class TestNamedAgents:
    """`Task(a)` and `Agent(a, b)` in files name the agents that may be delegated to."""

    FILES = tuple(definition(name) for name in ("alpha", "beta", "gamma"))

    @pytest.mark.parametrize("entry", ["Agent(alpha, beta)", "Task(alpha, beta)"])
    async def test_only_the_named_agents_can_be_delegated_to(self, entry: str) -> None:
        lead = definition("lead", tools=("read", entry))
        cast = Cast(
            boss=[delegate("lead"), say("done")],
            lead=[delegate("gamma"), delegate("alpha", call_id="d2"), say("led")],
            alpha=[say("alpha done")],
        )
        await boss(cast, lead, *self.FILES).run_async("Go")
        refused, done = cast.results("lead")
        assert refused.startswith(f"{E8}Task")
        assert done == "alpha done"
        description = cast.parts["lead"].calls[0].tools[-1].description
        assert "- alpha:" in description
        assert "- beta:" in description
        assert "gamma" not in description

    async def test_an_agent_denied_to_the_parent_is_denied_to_its_children(self) -> None:
        lead = definition("lead", tools=("Agent(alpha)",))
        cast = Cast(
            boss=[delegate("lead"), say("done")],
            lead=[delegate("alpha"), say("led")],
            alpha=[delegate("gamma"), say("alpha done")],
        )
        await boss(cast, lead, *self.FILES).run_async("Go")
        assert "gamma" not in str(cast.parts["alpha"].calls[0].tools)
        assert cast.parts.get("gamma") is None

    @pytest.mark.parametrize("written", ["gamma", "Gamma", "GAMMA", " gamma", "gam-ma", "gamma\u00a0"])
    async def test_a_denied_agent_is_denied_in_every_spelling(self, written: str) -> None:
        lead = definition("lead", disallowed_tools=("Agent(gamma)",))
        cast = Cast(
            boss=[delegate("lead"), say("done")],
            lead=[delegate(written), say("led")],
            gamma=[say("gamma was run")],
        )
        await boss(cast, lead, *self.FILES).run_async("Go")
        assert cast.parts["gamma"].first_call is None
        assert "gamma was run" not in cast.results("lead")[0]

    async def test_an_unknown_agent_name_returns_the_permitted_names(self) -> None:
        lead = definition("lead", disallowed_tools=("Task(gamma)",))
        cast = Cast(boss=[delegate("lead"), say("done")], lead=[delegate("omega"), say("led")])
        await boss(cast, lead, *self.FILES).run_async("Go")
        assert cast.results("lead") == [
            "[kantan-agents][E32] Agent not found: omega (available: alpha, beta)"
        ]

    async def test_a_file_without_the_tool_cannot_delegate(self) -> None:
        cast = Cast(boss=[delegate("lead"), say("done")], lead=[delegate("alpha"), say("led")])
        await boss(cast, definition("lead", tools=("read",)), *self.FILES).run_async("Go")
        assert cast.visible_tools("lead") == ["read"]
        assert cast.results("lead")[0].startswith(f"{E8}Task")


async def test_an_agent_used_as_a_tool_by_a_child_is_under_the_same_ceiling() -> None:
    cast = Cast(
        boss=[delegate("worker"), say("done")],
        worker=[use("ask_other", input="Write it."), say("worked")],
        other=[use("write", "t2", path="a"), say("other done")],
    )
    other = Agent("other", "You are other.", model=cast, tools=[write])
    ask = other.sdk_agent.as_tool("ask_other", "Ask the other.")
    tools = [ask, task_tool([definition("worker")], tool_rules={"deny": ["write"]})]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
    assert cast.results("worker") == ["other done"]
    assert cast.visible_tools("other") == []
    assert cast.results("other")[-1].startswith(f"{E8}write")


@pytest.mark.parametrize(
    "entry", ["Agent(code-reviewer)", "Agent(Code Reviewer)", "Task(code_reviewer)", "Agent(CodeReviewer)"]
)
async def test_a_denied_agent_is_denied_in_every_spelling_in_the_file(entry: str) -> None:
    lead = definition("lead", disallowed_tools=(entry,))
    cast = Cast(boss=[delegate("lead"), say("done")], lead=[delegate("code-reviewer"), say("led")])
    await boss(cast, lead, definition("code-reviewer"), definition("other")).run_async("Go")
    assert cast.results("lead")[0].startswith(f"{E8}Task")


async def test_a_permitted_agent_is_permitted_in_every_spelling() -> None:
    lead = definition("lead", tools=("Agent(Code Reviewer)",))
    cast = Cast(
        boss=[delegate("lead"), say("done")], lead=[delegate("code-reviewer"), say("led")], code=[say("fine")]
    )
    reviewer = AgentDefinition("code-reviewer", "reviews", "You are code.")
    await boss(cast, lead, reviewer).run_async("Go")
    assert cast.results("lead") == ["fine"]


@pytest.mark.parametrize("entry", ["Task", "Agent"])
async def test_files_call_the_tool_task_or_agent_whatever_its_name(entry: str) -> None:
    for lead, left in (
        (definition("lead", tools=("read", entry)), ["read", "delegate"]),
        (definition("lead", disallowed_tools=(entry,)), ["read", "write", "bash"]),
    ):
        cast = Cast(boss=[delegate("lead", tool="delegate"), say("done")], lead=[say("led")])
        await boss(cast, lead, definition("worker"), task={"name": "delegate"}).run_async("Go")
        assert cast.visible_tools("lead") == left


async def test_the_explanation_names_the_refusing_file() -> None:
    agent = Agent.from_definition(definition("reader", tools=("read",)), tools=[read, write], model=Cast())
    refused, allowed = agent.explain_tool("write"), agent.explain_tool("read")
    assert (refused.allowed, refused.layer) == (False, "definition")
    assert (allowed.allowed, allowed.layer, allowed.rule) == (True, "definition", "allow: read")
    assert "definition: " in str(refused)


async def test_the_explanation_for_a_child_names_its_parent() -> None:
    explained: dict[str, Any] = {}

    async def ask(run: Any, call_next: Any) -> None:
        if run.agent.name == "worker":
            explained.update({name: run.agent.explain_tool(name) for name in ("read", "write", "bash")})
        await call_next(run)

    cast = Cast(
        boss=[delegate("lead"), say("done")], lead=[delegate("worker"), say("led")], worker=[say("worked")]
    )
    lead = definition("lead", tools=("read", "bash", "Task"))
    agent = boss(cast, lead, definition("worker"), middleware=[ask], task={"tool_rules": {"deny": ["bash"]}})
    await agent.run_async("Go")
    assert explained["read"].allowed
    assert explained["write"].layer == "delegation: definition of lead"
    assert explained["bash"].layer == "delegation"


async def test_a_refusal_is_recorded_with_the_deciding_limit() -> None:
    seen: list[Any] = []

    def policy(violation: Any) -> str:
        seen.append((violation.agent, violation.tool, violation.layers))
        return "feedback"

    cast = Cast(boss=[delegate("worker"), say("done")], worker=[use("write", path="a"), say("ok")])
    agent = boss(cast, definition("worker", tools=("read",)), on_rule_violation=policy)
    await agent.run_async("Go")
    assert seen == [("worker", "write", ("definition",))]
