"""Each kind of change that a deploy may make, with a tool that has an effect for each key.

The rows of the table in ``docs/guides/deploying-durable-runs.md`` are the cases. Like a real model, this one
gives each call a new id, so that an answer that is asked for again makes a new key.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import ApplyPatchTool, ModelSettings, ShellTool, function_tool, handoff

from kantan_agents import Agent, AgentDefinition, Middleware, task_tool
from kantan_agents.core.interception import ModelCall, ModelNext, ToolCall, ToolNext, current_tool_call
from kantan_agents.durable import Durable
from kantan_agents.middleware import Approve, Retry
from kantan_agents.testing import OfflineServer, RecordedRequest
from tests.durable.revival import Case, call, results, revive

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


def replies(final: Any = "Done.") -> Any:
    """Return a model that pays, waits and answers."""

    def reply(request: RecordedRequest) -> Any:
        return [fresh("pay", amount=3), fresh("slow"), final][min(len(results(request)), 2)]

    return reply


Options = Callable[[Case], dict[str, Any]]


def changed(first: Options, second: Options, reply: Any = None, **more: Any) -> Case:
    """Return a case whose agent is another one in the second process."""

    def build(case: Case) -> Agent[Any]:
        options = {"tools": [pay_of(case), slow_of(case)], **(first if case.is_first else second)(case)}
        return case.agent(*options.pop("middleware", ()), **options)

    return Case(build, reply or replies(), **more)


def same(_case: Case) -> dict[str, Any]:
    """Return no options."""
    return {}


def _signature(case: Case) -> dict[str, Any]:
    async def pay(amount: str, currency: str) -> str:
        """Pay."""
        raise AssertionError((amount, currency))

    return {"tools": [function_tool(pay), slow_of(case)]}


class Twice(Middleware):
    """Asks the model twice and takes the second answer."""

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> Any:
        await call_next(call)
        return await call_next(call)


class Dry(Middleware):
    """Answers calls of ``pay`` itself."""

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        return "paid nothing" if call.name == "pay" else await call_next(call)


def _failing(case: Case) -> Any:
    async def pay(amount: int) -> str:
        """Pay, and lose the answer."""
        spend(case, f"pay {amount}")
        raise ConnectionError("the answer was lost")

    return pay


def _retried(case: Case) -> Any:
    async def pay(amount: int) -> str:
        """Fail the first time."""
        spend(case, f"pay {amount}")
        if len(case.effects) == 1:
            raise ConnectionError("try again")
        return f"paid {amount}"

    return pay


def _nested(name: str) -> Any:
    """Return what builds an agent with a subagent, which pays and waits."""

    def build(case: Case) -> Agent[Any]:
        known = name if case.is_first else f"new_{name}"
        definition = AgentDefinition(name=known, description="Pays.", system_prompt="You pay.")
        return case.agent(tools=[pay_of(case), slow_of(case), task_tool([definition])])

    return build


def _nested_reply(request: RecordedRequest) -> Any:
    if "You pay." in (request.system_instructions or ""):
        return replies("fine")(request)
    if results(request):
        return "Done."
    return fresh("Task", description="d", prompt="pay", subagent_type="payer")


def _as_tool(case: Case) -> Agent[Any]:
    inner = SDKAgent(
        "inner" if case.is_first else "renamed_inner",
        "You pay.",
        model=case.server.bundle().model if hasattr(case.server.bundle(), "model") else None,
        tools=[pay_of(case), slow_of(case)],
    )
    return case.agent(tools=[inner.as_tool("ask_payer", "Pays.")])


def _hands_over(first: str, second: str | None, tool: str | None = None) -> Any:
    def build(case: Case) -> Agent[Any]:
        name = first if case.is_first else second
        target = None
        if name is not None:
            target = Agent(
                name,
                "You pay.",
                model=case.server.bundle(),
                tools=[pay_of(case), slow_of(case)],
                tool_providers=None,
            )
        given = [] if target is None else [target]
        return case.agent(handoffs=given, tools=[])

    return build


def _handoff_reply(request: RecordedRequest) -> Any:
    if "You pay." in (request.system_instructions or ""):
        count = len(results(request)) - 1
        return [fresh("pay", amount=3), fresh("slow"), "Done."][count]
    return "Done." if results(request) else fresh("transfer_to_payer")


CASES = {
    "nothing": changed(same, same),
    "prompt": changed(same, lambda _: {"instructions": "Help better."}),
    "tools": changed(same, lambda case: {"tools": [slow_of(case), pay_of(case), pay_of(case, "refund")]}),
    "signature": changed(same, _signature),
    "output type added": changed(same, lambda _: {"output_type": Report}, replies({"total": 3})),
    "output type removed": changed(lambda _: {"output_type": Report}, same, replies({"total": 3})),
    "output type changed": changed(
        lambda _: {"output_type": Report}, lambda _: {"output_type": Note}, replies({"text": "t"})
    ),
    "output mode": changed(
        lambda _: {"output_type": Report, "output_mode": "tool"},
        lambda _: {"output_type": Report, "output_mode": "prompt"},
        replies('{"total": 3}'),
    ),
    "model": changed(same, lambda case: {"model": case.server.bundle("gpt-second")}),
    "settings": changed(same, lambda _: {"model_settings": ModelSettings(temperature=0)}),
    "retry added": changed(
        lambda case: {"tools": [_failing(case), slow_of(case)]},
        lambda case: {
            "tools": [_failing(case), slow_of(case)],
            "middleware": [Retry(tools=["pay"], initial_delay=0)],
        },
    ),
    "retry removed": changed(
        lambda case: {
            "tools": [_retried(case), slow_of(case)],
            "middleware": [Retry(tools=["pay"], initial_delay=0)],
        },
        lambda case: {"tools": [_retried(case), slow_of(case)]},
    ),
    "asks once": changed(lambda _: {"middleware": [Twice()]}, same),
    "asks twice": changed(same, lambda _: {"middleware": [Twice()]}),
    "no longer dry": changed(lambda _: {"middleware": [Dry()]}, same),
    "rules": changed(same, lambda _: {"middleware": []}, context={}),
    "approval": changed(same, lambda _: {"middleware": [Approve("pay")]}),
    "own approval": changed(same, lambda case: {"tools": [pay_of(case, needs_approval=True), slow_of(case)]}),
    "tool removed": changed(same, lambda case: {"tools": [slow_of(case)]}),
    "tool renamed": changed(same, lambda case: {"tools": [pay_of(case, "pay_v2"), slow_of(case)]}),
    "tool disabled": changed(same, lambda case: {"tools": [pay_of(case, is_enabled=False), slow_of(case)]}),
    "tool disabled by a function": changed(
        same, lambda case: {"tools": [pay_of(case, is_enabled=lambda *_: False), slow_of(case)]}
    ),
    "tool in flight renamed": changed(same, lambda case: {"tools": [pay_of(case), slow_of(case, "slow_v2")]}),
    "once in flight": changed(same, lambda _: {"middleware": [Durable(once=["slow"])]}),
    "once finished": changed(same, lambda _: {"middleware": [Durable(once=["pay"])]}),
    "no longer once": changed(lambda _: {"middleware": [Durable(once=["slow"])]}, same),
    "subagent renamed": Case(_nested("payer"), _nested_reply),
    "hand-off renamed": Case(_hands_over("payer", "new_payer"), _handoff_reply),
    "hand-off removed": Case(_hands_over("payer", None), _handoff_reply),
}


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> None:
    revive(tmp_path_factory.mktemp("changes"), CASES)


@pytest.mark.parametrize("name", list(CASES))
def test_show(name: str) -> None:
    case = CASES[name]
    print(name, "|", case.status, case.error, case.effects, case.keys, case.outcome and case.outcome.output)
    print("   ", case.raised, case.requests[1] and results(case.requests[1][-1]))
