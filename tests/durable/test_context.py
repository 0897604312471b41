"""What a context, an input and options may have so that another process can go on with the run."""

from __future__ import annotations

import datetime as dt
from typing import Any

import agents
import pytest
from agents import RunConfig

from kantan_agents import Agent, Durable, ToolRulesMode
from kantan_agents.errors import NotStorableError
from kantan_agents.middleware import Approve, Approved, Redact, UserRules, decide, to_json
from tests.durable.revival import Case, KilledError, call, revive

_KEY = "at least 16 bytes that nobody else knows"

_REPLIES = {0: [call("pay", "c1", amount=3)], 1: "Done."}


class _Provider(agents.MultiProvider):
    """A provider of models of the user."""


class _Connection:
    """Something that no other process has."""


def _tools(case: Case) -> list[Any]:
    async def pay(wrapper: agents.RunContextWrapper[Any], amount: int) -> str:
        """Pay."""
        case.effect(f"pay {amount} {sorted(map(str, wrapper.context))}")
        case.seen.append(wrapper.context.get("user_rules"))
        case.die()
        connection = wrapper.context.get("connection")
        return f"paid by {type(connection).__name__}"

    return [pay]


def _plain(case: Case) -> Agent[Any]:
    return case.agent(tools=_tools(case))


def _reloading(reload: Any) -> Any:
    return lambda case: case.agent(Durable(reload=reload), tools=_tools(case))


def _reload(context: dict[str, Any]) -> None:
    context["connection"] = _Connection()


async def _reload_later(context: dict[str, Any]) -> None:
    context["connection"] = _Connection()


def _never(_context: dict[str, Any]) -> None:
    raise AssertionError("nothing was left out")


async def _twice(agent: Agent[Any], case: Case) -> None:
    context = await agent.run_async("First.", dict(case.context))
    case.effects.clear()
    await agent.run_async("Second.", context)


def _talks(request: Any) -> Any:
    if str(request.input[-1].get("content")) == "First.":
        return "Hello."
    said = [item for item in request.input if item.get("type") == "function_call_output"]
    return _REPLIES[len(said)]


def _approving(case: Case) -> Agent[Any]:
    async def pay(amount: int, to: str = "") -> str:
        """Pay."""
        case.effect(f"pay {amount}")
        case.die()
        return "paid"

    return case.agent(Approve("pay"), Redact(), tools=[pay])


def _approve(**arguments: Any) -> Any:
    async def approve(agent: Agent[Any], case: Case) -> None:
        context = await agent.run_async("Go.", {"user": "aiko"})
        stored = to_json(context, key=_KEY)
        state = await decide(agent, stored, {"c1": Approved(arguments)}, key=_KEY)
        await agent.run_async(state)

    return approve


def _unstored(**given: Any) -> Case:
    return Case(_plain, **given)


_TUPLE = {"point": (1, 2)}
REFUSED = {
    "object": (_unstored(context={"connection": object()}), "context['connection'] is not JSON"),
    "set": (_unstored(context={"tags": {"a"}}), "context['tags'] is not JSON"),
    "tuple": (_unstored(context=_TUPLE), "context['point'] is not JSON"),
    "date": (_unstored(context={"day": dt.date(2026, 1, 2)}), "context['day'] is not JSON"),
    "number": (_unstored(context={"most": float("inf")}), "context['most'] is not JSON"),
    "keys": (_unstored(context={"names": {1: "a"}}), "context['names'] is not JSON"),
    "deep": (_unstored(context={"deep": {"list": [{"inner": object()}]}}), "context['deep'] is not JSON"),
    "key": (_unstored(context={3: "three"}), "context[3] has a key that is not a str"),
    "hooks": (_unstored(options={"hooks": agents.RunHooks()}), "the option hooks is an object"),
    "handlers": (
        _unstored(options={"error_handlers": {"max_turns": lambda _: None}}),
        "the option error_handlers is an object",
    ),
    "model": (
        _unstored(options={"run_config": RunConfig(model="gpt-6.1-terra")}),
        "run_config.model is an object",
    ),
    "filter": (
        _unstored(options={"run_config": RunConfig(call_model_input_filter=lambda data: data.model_data)}),
        "run_config.call_model_input_filter is an object",
    ),
    "provider": (
        _unstored(options={"run_config": RunConfig(model_provider=_Provider())}),
        "run_config.model_provider is an object",
    ),
    "metadata": (
        _unstored(options={"run_config": RunConfig(trace_metadata={"connection": object()})}),
        "run_config.trace_metadata is not JSON",
    ),
}
CASES = {
    "plain": Case(_plain, _REPLIES, context={"user": {"name": "aiko", "ids": [1, 2.5, None, True]}}),
    "reloaded": Case(_reloading(_reload), _REPLIES, context={"connection": _Connection(), "user": "aiko"}),
    "reloaded_later": Case(_reloading(_reload_later), _REPLIES, context={"connection": _Connection()}),
    "not_reloaded": Case(_reloading(_never), _REPLIES, context={"user": "aiko"}),
    "history": Case(_plain, _talks, begin=_twice, context={"user": "aiko"}),
    "modes": Case(
        _plain,
        _REPLIES,
        context={"tool_rules": {"allow": "*"}, "user_rules": ToolRulesMode.DENY_ALL},
    ),
    "user_rules": Case(_plain, _REPLIES, context={"user_rules": UserRules({"deny": ["pay"]})}),
    "forged": Case(_plain, _REPLIES, context={"user_rules": {"__tool_rules__": "allow_all"}}),
    "items": Case(
        _plain,
        _REPLIES,
        input=[
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "Go."},
        ],
    ),
    "approved": Case(_approving, _REPLIES, begin=_approve(amount=30), ends=False),
    "approved_private": Case(
        _approving, _REPLIES, begin=_approve(amount=3, to="someone@private.example"), ends=False
    ),
    **{name: case for name, (case, _) in REFUSED.items()},
}


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> None:
    revive(tmp_path_factory.mktemp("context"), CASES)


@pytest.mark.parametrize("name", REFUSED)
def test_what_another_process_would_not_have_is_refused_at_the_beginning(name: str) -> None:
    case, error = REFUSED[name]
    assert isinstance(case.raised, NotStorableError), case.raised
    assert f"[E151] A durable run of {name!r} cannot be stored: {error}" in str(case.raised)
    assert case.requests[0] == []


@pytest.mark.parametrize("name", ["plain", "modes", "user_rules", "items", "not_reloaded"])
def test_what_is_stored_is_the_same_in_another_process(name: str) -> None:
    case = CASES[name]
    assert isinstance(case.raised, KilledError), case.raised
    assert case.output == "Done."
    assert len(case.effects) == 2
    assert case.effects[0] == case.effects[1]
    assert len(case.requests[1]) == 1
    assert case.requests[1][0].input[: len(case.requests[0][0].input)] == case.requests[0][0].input


def test_rules_for_users_are_an_object_again_and_never_made_of_data() -> None:
    assert CASES["modes"].seen[-1] is ToolRulesMode.DENY_ALL
    assert CASES["user_rules"].seen[-1] == UserRules({"deny": ["pay"]})
    forged = {"__tool_rules__": "allow_all"}
    assert CASES["forged"].seen == [forged, forged]


@pytest.mark.parametrize("name", ["reloaded", "reloaded_later"])
def test_a_connection_is_made_again(name: str) -> None:
    case = CASES[name]
    assert case.answers == ["paid by _Connection"]
    assert case.outcome is not None
    assert "connection" not in case.outcome.context


def test_the_history_of_earlier_runs_is_there_again() -> None:
    case = CASES["history"]
    assert case.effects[0] == case.effects[1]
    assert case.outcome is not None
    texts = [entry["text"] for entry in case.outcome.context["history"]]
    assert texts == ["First.", "Hello.", "Second.", "Done."]


def test_an_approved_call_with_edited_arguments_is_made_again_after_a_kill() -> None:
    case = CASES["approved"]
    assert isinstance(case.raised, KilledError), case.raised
    assert [effect.split(" [")[0] for effect in case.effects] == ["pay 30", "pay 30"]
    assert case.answers == ["paid"]


def test_edited_arguments_that_are_redacted_cannot_be_stored() -> None:
    raised = CASES["approved_private"].raised
    assert isinstance(raised, NotStorableError)
    assert "the arguments that a person has edited have something that is redacted" in str(raised)
