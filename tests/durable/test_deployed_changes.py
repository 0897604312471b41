"""Each kind of change that a deploy may make, with a tool that has an effect for each key.

The rows of the table in ``docs/reference/durable-runs.md`` are the cases. Like a real model, this one
gives each call a new id, so that an answer that is asked for again makes a new key.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings, function_tool

from kantan_agents import Agent, AgentDefinition, Middleware, Next, Run, task_tool
from kantan_agents.core.interception import ModelCall, ModelNext, ToolCall, ToolNext, current_tool_call
from kantan_agents.durable import Durable
from kantan_agents.middleware import Approve, Fallback, Retry, SlashCommands
from kantan_agents.testing import RecordedRequest, Reply
from tests.durable.revival import Case, call, results, revive
from tests.tools.mcp.offering import Offering

_ids = itertools.count()


@dataclass
class Report:
    """One form of output."""

    total: int


@dataclass
class Note:
    """Another one."""

    text: str


def fresh(name: str, **arguments: Any) -> list[Any]:
    """Return a call with an id that no other has."""
    return [call(name, f"c{next(_ids)}", **arguments)]


def spend(case: Case, what: str) -> None:
    """Have an effect under the key of the call that is being made."""
    tool_call = current_tool_call.get()
    assert tool_call is not None
    case.effect(what)
    case.keys.append((what, tool_call.idempotency_key))


def pay_of(case: Case, name: str = "pay", **options: Any) -> Any:
    """Return a tool that pays."""

    async def pay(amount: int) -> str:
        """Pay."""
        spend(case, f"pay {amount}")
        return f"paid {amount}"

    return function_tool(pay, name_override=name, **options)


def slow_of(case: Case, name: str = "slow") -> Any:
    """Return a tool during whose call the first process ends."""

    async def slow() -> str:
        """Wait."""
        spend(case, "slow")
        case.die()
        return "waited"

    return function_tool(slow, name_override=name)


def tools_of(case: Case) -> list[Any]:
    """Return both tools."""
    return [pay_of(case), slow_of(case)]


def replies(final: Any = "Done.") -> Any:
    """Return a model that pays, waits and answers."""

    def reply(request: RecordedRequest) -> Any:
        return [fresh("pay", amount=3), fresh("slow"), final][min(len(results(request)), 2)]

    return reply


Options = Callable[[Case], dict[str, Any]]


def changed(first: Options, second: Options, reply: Any = None, **more: Any) -> Case:
    """Return a case whose agent is another one in the second process."""

    def build(case: Case) -> Agent[Any]:
        options = {"tools": tools_of(case), **(first if case.is_first else second)(case)}
        return case.agent(*options.pop("middleware", ()), **options)

    return Case(build, reply or replies(), **more)


def same(_case: Case) -> dict[str, Any]:
    """Return no options."""
    return {}


def given(**options: Any) -> Options:
    """Return these options."""
    return lambda _: dict(options)


def with_tools(*others: Callable[[Case], Any], **options: Any) -> Options:
    """Return other tools as options."""
    return lambda case: {"tools": [make(case) for make in others], **options}


def _other_signature(_case: Case) -> Any:
    async def pay(amount: str, currency: str) -> str:
        """Pay."""
        raise AssertionError((amount, currency))

    return function_tool(pay)


async def _streamed(agent: Agent[Any], case: Case) -> None:
    async with agent.stream(case.input) as events:
        async for _ in events:
            pass


class Twice(Middleware):
    """Asks the model twice and takes the second answer."""

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> Any:
        await call_next(call)
        return await call_next(call)


class Dry(Middleware):
    """Answers calls of ``pay`` itself."""

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        return "paid nothing" if call.name == "pay" else await call_next(call)


async def deny(run: Run, call_next: Next) -> None:
    """Deny ``pay``."""
    run.context["tool_rules"] = {"deny": ["pay"]}
    await call_next(run)


def _retry() -> Retry:
    return Retry(tools=["pay"], initial_delay=0.001)


def _failing(case: Case) -> Any:
    async def pay(amount: int) -> str:
        """Pay, and lose the answer."""
        spend(case, f"pay {amount}")
        raise ConnectionError("the answer was lost")

    return pay


def _failing_once(case: Case) -> Any:
    async def pay(amount: int) -> str:
        """Fail the first time."""
        spend(case, f"pay {amount}")
        if len(case.effects) == 1:
            raise ConnectionError("try again")
        return f"paid {amount}"

    return pay


def _with_fallback(case: Case) -> dict[str, Any]:
    second = case.server.bundle("gpt-second")
    return {"model": case.server.bundle("gpt-first"), "middleware": [Fallback(second)]}


def _fallback_reply(request: RecordedRequest) -> Any:
    if request.model == "gpt-first" and len(results(request)) < 2:
        return Reply(status=400, text="no")
    return replies()(request)


def _payer(case: Case, name: str) -> Agent[Any]:
    model = case.server.bundle()
    return Agent(name, "You pay.", model=model, tools=tools_of(case), tool_providers=None)


def inner(first: str, second: str | None, *, kind: str) -> Case:
    """Return a case with an agent inside, which pays, under a name for each process; None without it."""

    def build(case: Case) -> Agent[Any]:
        name = first if case.is_first else second
        if name is None:
            return case.agent(tools=tools_of(case))
        if kind == "transfer":
            target = _payer(case, name)
            return case.agent(handoffs=[target])
        if kind == "ask":
            return case.agent(tools=[_payer(case, name).as_tool(tool_name="ask", tool_description="Pays.")])
        definition = AgentDefinition(name=name, description="Pays.", system_prompt="You pay.")
        return case.agent(tools=[*tools_of(case), task_tool([definition])])

    arguments: dict[str, Any] = {
        "ask": {"input": "pay"},
        "Task": {"description": "d", "prompt": "pay", "subagent_type": first},
        "transfer": {},
    }[kind]

    def reply(request: RecordedRequest) -> Any:
        if "You pay." in (request.system_instructions or ""):
            count = len(results(request)) - (kind == "transfer")
            return [fresh("pay", amount=3), fresh("slow"), "Done."][count]
        name = f"transfer_to_{first}" if kind == "transfer" else kind
        return "Done." if results(request) else fresh(name, **arguments)

    return Case(build, reply)


class Till(Offering):
    """An MCP server whose tool pays; it is away in the second process."""

    def __init__(self, case: Case) -> None:
        super().__init__("till", "pay")
        self._case = case
        self.fails = not case.is_first

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        """Pay."""
        spend(self._case, "pay 3")
        return await super().call_tool(tool_name, arguments, meta)


def _at_till(**options: Any) -> Options:
    return lambda case: {"tools": [slow_of(case)], "mcp_servers": [Till(case)], **options}


def _disabled(enabled: Any) -> Options:
    return with_tools(lambda case: pay_of(case, is_enabled=enabled), slow_of)


FINISHED = {
    "nothing": changed(same, same),
    "prompt": changed(same, given(instructions="Help better.")),
    "context": changed(same, given(instructions="For {{ $ctx.user.name }}."), context={"user": "aiko"}),
    "model": changed(same, lambda case: {"model": case.server.bundle("gpt-second")}),
    "settings": changed(same, given(model_settings=ModelSettings(temperature=0))),
    "output type added": changed(same, given(output_type=Report), replies({"total": 3})),
    "output type removed": changed(given(output_type=Report), same, replies({"total": 3})),
    "output type changed": changed(
        given(output_type=Report), given(output_type=Note), replies({"text": "t"})
    ),
    "output type streamed": changed(same, given(output_type=Report), replies({"total": 3}), begin=_streamed),
    "output mode": changed(
        given(output_type=Report, output_mode="tool"),
        given(output_type=Report, output_mode="prompt"),
        replies('{"total": 3}'),
    ),
    "tools added": changed(same, with_tools(slow_of, lambda case: pay_of(case, "give"), pay_of)),
    "signature": changed(same, with_tools(_other_signature, slow_of)),
    "tool removed": changed(same, with_tools(slow_of)),
    "tool renamed": changed(same, with_tools(lambda case: pay_of(case, "pay_v2"), slow_of)),
    "tool disabled": changed(same, _disabled(enabled=False)),
    "tool disabled by a function": changed(same, _disabled(lambda *_: False)),
    "server away": changed(_at_till(on_mcp_failure="continue"), _at_till(on_mcp_failure="continue")),
    "fallback removed": changed(
        _with_fallback, lambda case: {"model": case.server.bundle("gpt-first")}, _fallback_reply
    ),
    "retry added": changed(
        with_tools(_failing, slow_of), with_tools(_failing, slow_of, middleware=[_retry()])
    ),
    "middleware asks once": changed(given(middleware=[Twice()]), same),
    "middleware answers": changed(same, given(middleware=[Dry()])),
    "once finished": changed(same, given(middleware=[Durable(once=["pay"])])),
    "no longer once": changed(given(middleware=[Durable(once=["slow"])]), same),
    "subagent": inner("payer", "payer", kind="Task"),
    "agent as tool": inner("payer", "payer", kind="ask"),
    "hand-off": inner("payer", "payer", kind="transfer"),
}
"""Cases that end, with each effect under one key. A call that was in flight is made again."""

PARKED = {
    "approval added": (changed(same, given(middleware=[Approve("pay")])), "asks for approval of a call"),
    "own approval added": (
        changed(same, with_tools(lambda case: pay_of(case, needs_approval=True), slow_of)),
        "asks for approval of a call",
    ),
    "middleware asks twice": (changed(same, given(middleware=[Twice()])), "would ask anew"),
    "tool in flight renamed": (
        changed(same, with_tools(pay_of, lambda case: slow_of(case, "slow_v2"))),
        "has no tool or hand-off 'slow' any more",
    ),
    "server away": (changed(_at_till(), _at_till()), "cannot follow what was done before"),
    "subagent renamed": (inner("payer", "new_payer", kind="Task"), "has ended the call without"),
    "agent as tool renamed": (inner("payer", "new_payer", kind="ask"), "would ask anew"),
    "hand-off renamed": (
        inner("payer", "new_payer", kind="transfer"),
        "no tool or hand-off 'transfer_to_payer'",
    ),
    "hand-off removed": (inner("payer", None, kind="transfer"), "no tool or hand-off 'transfer_to_payer'"),
}
"""Cases in which the new program cannot go on, each with the reason."""

OTHERS = {
    "retry removed": changed(
        with_tools(_failing_once, slow_of, middleware=[_retry()]), with_tools(_failing_once, slow_of)
    ),
    "no longer dry": changed(given(middleware=[Dry()]), same),
    "once in flight": changed(same, given(middleware=[Durable(once=["slow"])])),
    "rules": changed(same, with_tools(slow_of, middleware=[deny])),
}


def command(first: Options, second: Options, line: str = "/slow") -> Case:
    """Return a case in which a person calls the tool. If that is not ``slow``, its result is recorded."""

    class DieAfterwards(Middleware):
        async def run(self, run: Run, call_next: Next) -> None:
            await call_next(run)
            case.die()

    def build(case: Case) -> Agent[Any]:
        options = {"tools": tools_of(case), **(first if case.is_first else second)(case)}
        given = options.pop("middleware", ())
        reads = SlashCommands({"allow": "*"}, prefix=options.pop("prefix", "/"))
        commands = [reads] if options.pop("has_commands", True) else []
        return case.agent(*given, DieAfterwards(), *commands, **options)

    case = Case(build, {}, input=line)
    return case


_slow_once = given(middleware=[Durable(once=["slow"])])
_no_commands = given(has_commands=False)
COMMANDS = {
    "nothing": (command(same, same), "finished", ["slow", "slow"]),
    "recorded": (command(same, same, "/pay amount=3"), "finished", ["pay 3"]),
    "no commands": (command(same, _no_commands), "parked", ["slow"]),
    "no commands, recorded": (command(same, _no_commands, "/pay amount=3"), "parked", ["pay 3"]),
    "other prefix": (command(same, given(prefix="!")), "parked", ["slow"]),
    "removed": (command(same, with_tools(pay_of)), "parked", ["slow"]),
    "signature": (command(same, with_tools(_other_signature), "/pay amount=3"), "parked", ["pay 3"]),
    "once now": (command(same, _slow_once), "failed", ["slow"]),
    "once too": (command(given(middleware=[Durable(once=["pay"])]), _slow_once), "failed", ["slow"]),
    "once no longer": (command(_slow_once, same), "finished", ["slow", "slow"]),
}
"""Calls of a slash command, each with how its run ends and what it has done."""
CASES = {
    **FINISHED,
    **{f"{name}, parked": case for name, (case, _) in PARKED.items()},
    **OTHERS,
    **{f"{name}, command": case for name, (case, *_) in COMMANDS.items()},
}


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> None:
    revive(tmp_path_factory.mktemp("changes"), CASES)


def keys(case: Case, what: str) -> int:
    """Return how many keys an effect was had under."""
    return len({key for effect, key in case.keys if effect == what})


@pytest.mark.parametrize("name", list(FINISHED))
def test_what_was_done_is_used_as_it_is(name: str) -> None:
    case = FINISHED[name]
    assert (case.status, case.error) == ("finished", None)
    assert case.effects == ["pay 3", "slow", "slow"]
    assert keys(case, "pay 3") == keys(case, "slow") == 1


@pytest.mark.parametrize("name", list(PARKED))
def test_a_program_that_cannot_use_what_was_done_parks_the_run(name: str) -> None:
    case, reason = PARKED[name]
    assert case.status == "parked"
    assert "[E155]" in (case.error or "")
    assert reason in (case.error or "")
    assert case.effects.count("pay 3") == 1
    assert keys(case, "pay 3") == keys(case, "slow") == 1


def test_the_last_try_counts_without_the_middleware_that_has_tried_again() -> None:
    case = OTHERS["retry removed"]
    assert case.effects == ["pay 3", "pay 3", "slow", "slow"]
    assert case.answers == ["paid 3", "waited"]
    assert keys(case, "pay 3") == 1


def test_what_a_middleware_has_answered_is_not_made_without_it() -> None:
    case = OTHERS["no longer dry"]
    assert case.effects == ["slow", "slow"]
    assert case.answers == ["paid nothing", "waited"]


def test_a_call_in_flight_of_a_tool_that_is_once_now_is_not_made_again() -> None:
    case = OTHERS["once in flight"]
    assert case.status == "failed"
    assert "[E153] The tool 'slow'" in (case.error or "")
    assert case.effects == ["pay 3", "slow"]


def test_a_finished_call_of_a_gone_tool_obeys_the_rules_of_now() -> None:
    case = OTHERS["rules"]
    assert "[E8] Tool is not allowed: pay" in case.answers[0]
    assert case.effects == ["pay 3", "slow", "slow"]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_call_of_a_slash_command_is_made_once_or_as_often_as_said(name: str) -> None:
    case, status, effects = COMMANDS[name]
    assert (case.status, case.effects) == (status, effects), case.error
    assert len({*case.keys}) == 1
    assert ("[E153]" in (case.error or "")) == (status == "failed")


def test_all_of_this_holds_with_temporal(temporal: str, tmp_path: Path) -> None:
    revive(tmp_path, CASES, engine=temporal)
    for name in FINISHED:
        test_what_was_done_is_used_as_it_is(name)
    for name in PARKED:
        test_a_program_that_cannot_use_what_was_done_parks_the_run(name)
    test_the_last_try_counts_without_the_middleware_that_has_tried_again()
    test_what_a_middleware_has_answered_is_not_made_without_it()
    test_a_call_in_flight_of_a_tool_that_is_once_now_is_not_made_again()
    test_a_finished_call_of_a_gone_tool_obeys_the_rules_of_now()
    for name in COMMANDS:
        test_a_call_of_a_slash_command_is_made_once_or_as_often_as_said(name)
