"""What the record does not tell is reported, never counted silently."""

from __future__ import annotations

import copy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import function_tool

from kantan_agents import Agent, Middleware, SlashCommands
from kantan_agents.errors import (
    NoRecordedCallsError,
    RedactedContentBlockedError,
)
from kantan_agents.middleware import Redact
from kantan_agents.testing import Reply, ScriptedModel, ScriptedToolCall
from kantan_agents.tool_rules import worker
from tests.lab.rule_changes import recorded as helper
from tests.lab.rule_changes.recorded import Recording

ABOUT_ARGUMENTS = {"params": {"pay": {"card": {"maxLength": 4}}}}


@function_tool
def pay(card: str) -> str:
    return "paid"


def shop(card: str = "1", tools: Any = (pay,), tool: str = "pay", **options: Any) -> Agent[Any]:
    calls = Reply(tool_calls=[ScriptedToolCall(tool, {"card": card}, id="c0")])
    model = ScriptedModel([calls, "Done."])
    return Agent("shop", "Sell.", model=model, tools=[*tools], tool_providers=None, **options)


class Replace(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        call.arguments = '{"card": "12345"}'
        return await call_next(call)


class Answer(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        return "answered"


class Refuse(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        output = await call_next(call)
        call.refusal = RedactedContentBlockedError(rule="any", where="a result")
        return output


class SwitchOff(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        call.tool.is_enabled = False
        return await call_next(call)


async def reason_for(recorded: Recording, agent: Agent[Any], rules: Any = None, before: Any = None) -> str:
    """Return why the only call is not judged."""
    trace = await recorded.run(agent, before)
    with pytest.raises(NoRecordedCallsError) as caught:
        recorded.ask(rules or {"deny": ["pay"]}, trace)
    assert caught.value.reason.startswith("none of 1 calls can be judged: ")
    return caught.value.reason.partition(": ")[2]


async def test_arguments_that_a_middleware_replaces_are_not_those_of_the_record(recorded: Recording) -> None:
    said = "the rules saw other arguments than those that are recorded"
    assert await reason_for(recorded, shop(middleware=[Replace()]), ABOUT_ARGUMENTS) == said
    trace = await recorded.run(shop(middleware=[Replace()]))
    assert recorded.ask({"deny": ["pay"]}, trace).newly_denied  # whatever the arguments are


async def test_masked_arguments_are_not_those_of_the_record(recorded: Recording) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwx"
    said = await reason_for(recorded, shop(secret), ABOUT_ARGUMENTS)
    assert said == "the rules saw other arguments than those that are recorded"
    trace = await recorded.run(shop(secret))
    (flip,) = recorded.ask({"deny": ["pay"]}, trace).flips
    assert "sk-***" in flip.arguments
    assert secret not in flip.arguments


async def test_arguments_that_the_redact_function_changes_are_not_those_of_the_record(tmp_path: Path) -> None:
    def redact(span: dict[str, Any]) -> dict[str, Any]:
        data = span.get("span_data") or {}
        return {**span, "span_data": {**data, "input": "{}"}} if data.get("type") == "function" else span

    with helper.recording(tmp_path / "t.sqlite3", redact=redact) as recorded:
        said = await reason_for(recorded, shop(), ABOUT_ARGUMENTS)
    assert said == "the rules saw other arguments than those that are recorded"


async def test_a_call_that_a_middleware_answers_is_not_judged(recorded: Recording) -> None:
    said = await reason_for(recorded, shop(middleware=[Answer()]))
    assert said == "it was answered or had ended before the rules were asked"


async def test_a_call_that_a_middleware_refuses_is_not_judged(recorded: Recording) -> None:
    said = await reason_for(recorded, shop(middleware=[Refuse()]))
    assert said == "something else than the rules has refused it (E84)"


async def test_redacted_arguments_are_judged_if_the_rules_saw_them_so(recorded: Recording) -> None:
    mail = "jane@example.com"
    restoring = shop(mail, middleware=[Redact(restore=True)])
    said = "the rules saw other arguments than those that are recorded"
    assert await reason_for(recorded, restoring, ABOUT_ARGUMENTS) == said
    trace = await recorded.run(shop(mail, middleware=[Redact()]))
    (flip,) = recorded.ask(ABOUT_ARGUMENTS, trace).flips
    assert mail not in flip.arguments


async def test_a_tool_that_was_left_out_of_a_turn_is_not_judged(recorded: Recording) -> None:
    tool = copy.copy(pay)
    tool.is_enabled = False
    assert await reason_for(recorded, shop(tools=[tool])) == "its agent has the tool, but not in that turn"


async def test_a_tool_that_is_switched_off_is_not_judged(recorded: Recording) -> None:
    tool = copy.copy(pay)
    assert (
        await reason_for(recorded, shop(tools=[tool], middleware=[SwitchOff()]))
        == "its tool was switched off"
    )


async def test_a_command_of_a_user_is_under_rules_of_its_own(recorded: Recording) -> None:
    agent = shop(middleware=[SlashCommands(user_rules={})])
    with agents.trace("by a user") as trace:
        await agent.run_async("/pay 1", {"tool_rules": {}})
    with pytest.raises(NoRecordedCallsError, match="the rules for users decide"):
        recorded.ask({"deny": ["pay"]}, trace.trace_id)


async def test_a_decision_that_the_recorded_rules_do_not_explain_is_not_judged(recorded: Recording) -> None:
    trace = await recorded.run(shop(), {"deny": ["pay"]})
    recorded.store.trace(trace)
    with closing(sqlite3.connect(recorded.path)) as connection, connection:
        changed = connection.execute(
            "UPDATE kantan_agents_contents SET body = replace(body, 'pay', 'pai') WHERE kind = 'rules'"
        )
        assert changed.rowcount
    with pytest.raises(NoRecordedCallsError, match="the recorded rules do not explain the recorded decision"):
        recorded.ask({}, trace)


async def test_an_incomplete_record_is_named_and_its_calls_are_not_judged(tmp_path: Path) -> None:
    def withhold(span: dict[str, Any]) -> dict[str, Any] | None:
        return None if (span.get("span_data") or {}).get("type") == "response" else span

    with helper.recording(tmp_path / "t.sqlite3", redact=withhold) as recorded:
        trace = await recorded.run(shop())
        with pytest.raises(NoRecordedCallsError, match="its run is recorded incompletely"):
            recorded.ask({}, trace)


async def test_a_run_without_a_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    with helper.recording(path, record_requests=False) as recorded:
        without = await recorded.run(shop())
    with helper.recording(path) as recorded:
        trace = await recorded.run(shop())
        answer = recorded.ask({"deny": ["pay"]}, without, trace)
        assert [(one.trace_id, one.missing[0].split(":")[1]) for one in answer.incomplete] == [
            (without, " it has no record")
        ]
        assert [flip.trace_id for flip in answer.flips] == [trace]
        with pytest.raises(NoRecordedCallsError, match="1 traces are not recorded completely"):
            recorded.ask({}, without)


async def test_invalid_calls_fail_whatever_the_rules_say(recorded: Recording) -> None:
    calls = [
        ScriptedToolCall("nothing", id="c0"),
        ScriptedToolCall("pay", "[1]", id="c1"),
        ScriptedToolCall("pay", {"card": "1"}),
    ]
    model = ScriptedModel([Reply(tool_calls=calls), "Done."])
    trace = await recorded.run(Agent("shop", "Sell.", model=model, tools=[pay], tool_providers=None))
    answer = recorded.ask({"deny": "*"}, trace)
    assert (answer.invalid, answer.judged, len(answer.flips)) == (2, 1, 1)


async def test_a_check_that_takes_too_long_ends(recorded: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"params": {"pay": {"card": {"pattern": "[ab]*a[ab]{200}c"}}}}
    trace = await recorded.run(shop("a" * 200_000))
    monkeypatch.setattr("kantan_agents.lab.rule_changes.decide.LIFETIME_SECONDS", 0.01)
    with pytest.raises(NoRecordedCallsError, match=r"it could not be checked \(TimeoutExpired\)"):
        recorded.ask(long, trace)
    assert worker.LIFETIME_SECONDS > 1


async def test_large_arguments_are_decided_as_in_a_run(recorded: Recording) -> None:
    rules = {"params": {"pay": {"card": {"pattern": "^(a|b)*$"}}}}
    good, bad = "ab" * 100_000, "ab" * 100_000 + "c"
    first = [await recorded.run(shop(card)) for card in (good, bad)]
    second = [await recorded.run(shop(card), rules) for card in (good, bad)]
    (flip,) = recorded.ask(rules, *first).flips
    assert flip.trace_id == first[1]
    assert not recorded.ask(rules, *second).flips
