"""No sequence of calls, hand-offs and rule changes executes what the rules in force deny."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import agents
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kantan_agents import Agent
from kantan_agents.errors import RepeatedFailureError
from kantan_agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

TOOLS = ("read", "write", "fs.read", "fs.write", "Bash")
ENTRIES = ("read", "write", "fs.read", "fs.*", "*e*", "Bash", "Bash(git:*)", "Bash(git push:*)", "?rite")
COMMANDS = ("git", "git status", "git push", "git status; git push", "gitk", "ls", "git  push x")
name_sets = st.one_of(st.none(), st.just("*"), st.lists(st.sampled_from(ENTRIES), max_size=3))
limits = st.dictionaries(
    st.sampled_from(["read", "fs.*", "Bash"]),
    st.just({"value": {"maxLength": 5}}) | st.just({"value": {"enum": ["git", "ls"]}}),
    max_size=2,
)


def covered(entries: Any, tool: str, value: str) -> bool:
    """Decide about one call by a set of entries: a second, naive implementation."""
    if entries is None:
        return False
    if entries == "*":
        return True
    for entry in entries:
        if entry == "Bash(git:*)":
            # In allow it does not cover a chained command; in deny it also covers each command of a chain.
            if tool == "Bash" and value.split(" ", maxsplit=1)[0] == "git" and ";" not in value:
                return True
        elif entry == "Bash(git push:*)":
            if tool == "Bash" and "git push" in " ".join(value.split()):
                return True
        elif entry == "fs.*":
            if tool.startswith("fs."):
                return True
        elif entry == "*e*":
            if "e" in tool:
                return True
        elif entry == tool or (entry == "?rite" and tool == "write"):
            return True
    return False


def denied(rules: Any, tool: str, value: str) -> bool:
    """Return whether the rules refuse a call."""
    deny, allow = rules["deny"], rules["allow"]
    chained = ";" in value and isinstance(deny, list) and "Bash(git:*)" in deny and tool == "Bash"
    if covered(deny, tool, value) or chained:
        return True
    granting = (
        [e for e in allow if e != "Bash(git push:*)" or ";" not in value]
        if isinstance(allow, list)
        else allow
    )
    if allow is not None and not covered(granting, tool, value):
        return True
    for name, limit in rules["params"].items():
        if name == tool or (name == "fs.*" and tool.startswith("fs.")):
            rule_ = limit["value"]
            if len(value) > rule_.get("maxLength", 99) or value not in rule_.get("enum", [value]):
                return True
    return False


class NoWayAround(RuleBasedStateMachine):
    """Builds a script of one run and executes it with the SDK's runner at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Any] = []
        self.start: Any = {"allow": None, "deny": None, "params": {}}

    @initialize(allow=name_sets, deny=name_sets, params=limits)
    def begin(self, allow: Any, deny: Any, params: Any) -> None:
        self.start = {"allow": allow, "deny": deny, "params": params}

    @rule(tool=st.sampled_from([*TOOLS, "nonsense"]), value=st.sampled_from(COMMANDS))
    def call_a_tool(self, tool: str, value: str) -> None:
        self.steps.append(("call", tool, value))

    @rule(to=st.sampled_from(["ours", "theirs"]))
    def hand_over(self, to: str) -> None:
        self.steps.append(("hand over", to, None))

    @rule(key=st.sampled_from(["allow", "deny"]), value=name_sets)
    def change_rules(self, key: str, value: Any) -> None:
        self.steps.append(("change", key, value))

    @rule(entry=st.sampled_from(ENTRIES))
    def deny_in_place(self, entry: str) -> None:
        self.steps.append(("deny", "deny", entry))

    def teardown(self) -> None:
        asyncio.run(self.play())

    async def play(self) -> None:
        context: dict[str, Any] = {"tool_rules": json.loads(json.dumps(self.start))}
        wrong: list[Any] = []
        calls_made = 0

        def tool(name: str) -> Any:
            async def run(value: str) -> str:
                """Do it."""
                if denied(context["tool_rules"], name, value):
                    wrong.append((name, value, json.dumps(context["tool_rules"])))
                return "ok"

            return agents.function_tool(run, name_override=name)

        pending = list(self.steps)

        def answer(call: Any) -> Any:
            """Return the model's next answer; changes of the rules happen while the model thinks."""
            nonlocal calls_made
            while pending:
                kind, what, value = pending.pop(0)
                if kind == "change":
                    context["tool_rules"][what] = value
                elif kind == "deny":
                    held = context["tool_rules"]["deny"]
                    if isinstance(held, list):
                        held.append(value)
                    else:
                        context["tool_rules"]["deny"] = [value] if held is None else held
                else:
                    calls_made += 1
                    name = what if kind == "call" else f"transfer_to_{what}"
                    arguments = {"value": value} if kind == "call" else {}
                    offered = {handoff.tool_name for handoff in call.handoffs}
                    if kind == "call" or name in offered:
                        return [function_call(name, arguments, call_id=f"c{calls_made}")]
            return [assistant_message("done")]

        model = ScriptedModel([ModelStep(responder=answer)] * (len(self.steps) + 2))
        tools = [tool(name) for name in TOOLS]
        theirs = agents.Agent[Any](name="theirs", tools=list(tools), model=model)
        ours = Agent("ours", "x", tools=tools, model=model, handoffs=[theirs])
        theirs.handoffs = [agents.handoff(ours.sdk_agent)]
        start = Agent("start", "x", tools=tools, model=model, handoffs=[ours, theirs])
        # The same call refused five times in a row ends a run; what was called until then counts.
        with suppress(RepeatedFailureError):
            await start.run_async("hi", context, max_turns=len(self.steps) + 3)
        assert wrong == []


TestNoWayAround = NoWayAround.TestCase
TestNoWayAround.settings = settings(deadline=None, stateful_step_count=8)
