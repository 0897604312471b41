"""A check never blocks the event loop for long, and a call that cannot be checked is refused."""

from __future__ import annotations

import random
import sys
from typing import Any

import anyio
import pytest
from agents import RunContextWrapper

from kantan_agents.tool_rules import ToolFacts, ToolRules
from kantan_agents.tools.guards.check import check_call
from kantan_agents.tools.guards.guard import ToolGuard

TOOL = ToolFacts(("t",), "value", {"properties": {"value": {"type": "string"}}})
DEAR = "[ab]*a[ab]{200}c"
RANDOM = random.Random(1)
LONG = "".join(RANDOM.choice("ab") for _ in range(100_000))


def rules(pattern: str) -> ToolRules:
    return ToolRules.parse({"params": {"t": {"value": {"pattern": pattern}}}})


async def in_how_many_processes(
    monkeypatch: pytest.MonkeyPatch, ruled: ToolRules | str, value: str
) -> tuple[int, Any]:
    """Return how often the check left the event loop, and its decision."""
    started: list[Any] = []
    run = anyio.open_process

    async def counted(*args: Any, **kwargs: Any) -> Any:
        started.append(args)
        return await run(*args, **kwargs)

    monkeypatch.setattr(anyio, "open_process", counted)
    ruled = rules(ruled) if isinstance(ruled, str) else ruled
    decision = await check_call(ruled, TOOL, {"value": value})
    return len(started), decision


async def test_an_expensive_pattern_and_a_long_text_are_checked_in_a_subprocess(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away, refused = await in_how_many_processes(monkeypatch, DEAR, LONG)
    assert (away, refused.allowed, refused.error.code) == (1, False, "E15")
    assert refused.rule == "params: t.value.pattern"
    assert refused.error.limit == DEAR


async def test_a_valid_call_is_allowed_after_a_check_in_a_subprocess(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away, allowed = await in_how_many_processes(monkeypatch, DEAR, f"{LONG}a{'b' * 200}c")
    assert (away, allowed.allowed) == (1, True)


@pytest.mark.parametrize(("pattern", "value"), [("^(a+)+$", "a" * 100_000 + "!"), (DEAR, "a" * 300)])
async def test_a_quick_check_stays_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, pattern: str, value: str
) -> None:
    away, refused = await in_how_many_processes(monkeypatch, pattern, value)
    assert (away, refused.error.code) == (0, "E15")


async def test_a_check_that_fails_refuses_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    decision = await check_call(rules(DEAR), TOOL, {"value": LONG})
    assert decision.error is not None
    assert decision.error.code == "E10"
    assert "FileNotFoundError" in getattr(decision.error, "reason", "")


@pytest.mark.parametrize(
    ("entries", "value", "allowed"),
    [
        ({"deny": ["t(rm:*)"]}, "env x; " * 10_000 + "rm -rf /", False),
        ({"deny": ["t(rm:*)"]}, "env x; " * 10_000, True),
        ({"allow": ["t(git:*)"]}, "git " + "x " * 10_000, True),
        ({"allow": ["t(git:*)"]}, "git " + "x " * 10_000 + "; rm", False),
    ],
)
async def test_a_long_command_is_checked_in_a_subprocess(
    monkeypatch: pytest.MonkeyPatch, entries: Any, value: str, allowed: bool
) -> None:
    away, decision = await in_how_many_processes(monkeypatch, ToolRules.parse(entries), value)
    assert (away, decision.allowed) == (1, allowed)
    assert decision.error is None if allowed else decision.error.code == "E8"
    assert decision.rule == ANSWERS[allowed, next(iter(entries))]


ANSWERS = {
    (True, "deny"): "no rule is about it",
    (False, "deny"): "deny: t(rm:*)",
    (True, "allow"): "allow: t(git:*)",
    (False, "allow"): "allow has no entry for it",
}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"ids": [' + "1, " * 20_000 + "99]}", "E17"),
        ('{"ids": [' + "1, " * 20_000 + "2]}", None),
        ('{"ids": [' + "1, " * 20_000 + "]}", "E10"),
        ('{"ids": [' + '{"a": 1}, ' * 9_000 + '{"a": 1, "a": 2}]}', "E10"),
    ],
)
async def test_arguments_with_very_many_values_are_checked_in_a_subprocess(
    text: str, code: str | None
) -> None:
    ruled = ToolRules.parse({"params": {"t": {"ids[]": {"maximum": 50}}}})
    decision = await check_call(ruled, TOOL, text)
    assert (decision.error.code if decision.error is not None else None) == code


async def test_rules_that_change_during_a_check_apply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules: dict[str, Any] = {"params": {"t": {"value": {"pattern": DEAR}}}}
    run = anyio.open_process

    async def denying_meanwhile(*args: Any, **kwargs: Any) -> Any:
        done = await run(*args, **kwargs)
        rules["deny"] = ["t"]
        return done

    monkeypatch.setattr(anyio, "open_process", denying_meanwhile)
    wrapper = RunContextWrapper({"tool_rules": rules})
    refusal = await ToolGuard(TOOL, None).refusal(wrapper, {"value": f"{LONG}a{'b' * 200}c"})
    assert refusal is not None
    assert "[E8]" in refusal
