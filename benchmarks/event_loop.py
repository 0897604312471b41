"""Measures how long the check of one hostile call blocks the event loop.

The loop's selector measures the time from the end of one wait to the beginning of the next, during which the
loop is blocked. That is exact to the microsecond, does not disturb the loop, and needs no second task.
"""

from __future__ import annotations

import asyncio
import json
import re
import selectors
import statistics
import time
from typing import Any

import attrs

from benchmarks.guarded_calls import TooLongError, at_most
from kantan_agents.tool_rules import ToolFacts, ToolRules
from kantan_agents.tools.guards.check import check_call

LENGTH = 100_000
"""Characters of a hostile value."""


class LoopClock(selectors.DefaultSelector):
    """A selector that records the longest time for which its loop was blocked.

    Attributes:
        held: That time in seconds; the caller resets it to 0.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held = 0.0
        self._since: float | None = None

    def select(self, timeout: float | None = None) -> Any:
        """Wait for events."""
        if self._since is not None:
            self.held = max(self.held, time.perf_counter() - self._since)
        try:
            return super().select(timeout)
        finally:
            self._since = time.perf_counter()


@attrs.frozen
class Attack:
    """A tool call designed to block the loop.

    Attributes:
        name: Name of the attack.
        rules: The rules to check it against, in the public dict shape.
        arguments: The call's arguments as JSON text.
        pattern: The hostile pattern, if the rule is about a string.
        unit: The repeated part of the hostile value, from which a shorter one is built.
        end: The end of the value, which makes it fail.
    """

    name: str
    rules: dict[str, Any]
    arguments: str
    pattern: str | None = None
    unit: str = ""
    end: str = ""

    def shorter_value(self, length: int) -> str:
        """Return a shorter value of the same form."""
        return _long(self.unit, self.end, length)


@attrs.frozen
class Held:
    """Seconds for which the loop was blocked: the median and the longest of the repeats."""

    median: float
    worst: float


def attacks() -> list[Attack]:
    """Return the attacks, each with ``LENGTH`` characters."""
    return [
        _on_pattern(r"^(a+)+$", "a", "!"),
        _on_pattern(r"(x+x+)+y", "x"),
        _on_pattern(r"(a|aa)+$", "a", "!"),
        _on_pattern(r"([a-zA-Z]+)*\d$", "a"),
        _on_pattern(r"[ab]*a[ab]{200}c", "ab"),
        _on_pattern(r"(?:a?){100}a{100}$", "a", "!"),
        _on_pattern(r"\w{1,60}@\w{1,60}$", "a"),
        _on_pattern(r"(\w+\s?)*$", "ä", "!"),
        Attack(
            r"(\w+\s?)*$, \u escapes",
            _params("text", {"pattern": r"(\w+\s?)*$"}),
            json.dumps({"text": _long("ä", "!")}),
        ),
        Attack("no pattern, maxLength", _params("text", {"maxLength": 5}), _text(_long("a"))),
        Attack(
            "[ab]*a[ab]{200}c, texts of 5",
            _params("items[]", {"pattern": "[ab]*a[ab]{200}c"}),
            _items("ababa"),
        ),
        Attack("maximum, many integers", _params("items[]", {"maximum": 5}), _items(1)),
        Attack("maxLength, many objects", _params("items[].name", {"maxLength": 5}), _items({})),
        Attack("deny bash(rm:*), a;a;a", {"deny": ["bash(rm:*)"]}, _text(_long("a;"))),
        Attack("deny bash(rm:*), a=b a=b", {"deny": ["bash(rm:*)"]}, _text(_long("a=b "))),
        Attack('deny bash(rm:*), """', {"deny": ["bash(rm:*)"]}, _text(_long('"'))),
        Attack("deny bash(rm:*), \\\\\\", {"deny": ["bash(rm:*)"]}, _text(_long("\\"))),
        Attack("deny bash(rm:*), 1<1<", {"deny": ["bash(rm:*)"]}, _text(_long("1<"))),
        Attack("allow bash(rm:*), rm a a", {"allow": ["bash(rm:*)"]}, _text(_long("rm a "))),
    ]


def _on_pattern(pattern: str, unit: str, end: str = "") -> Attack:
    rules = _params("text", {"pattern": pattern})
    return Attack(pattern, rules, _text(_long(unit, end)), pattern, unit, end)


def _params(path: str, rule: dict[str, Any]) -> dict[str, Any]:
    return {"params": {"bash": {path: rule}}}


def _long(unit: str, end: str = "", length: int = LENGTH) -> str:
    return (unit * length)[: length - len(end)] + end


def _text(value: str) -> str:
    return json.dumps({"text": value}, ensure_ascii=False)  # as models write it


def _items(item: Any) -> str:
    count = LENGTH // (len(json.dumps(item)) + 2)
    return json.dumps({"items": [item] * count})


_TOOL = ToolFacts(
    ("bash",),
    "text",
    {"properties": {"text": {"type": "string"}, "items": {"type": "array"}}},
)


async def hold_times(clock: LoopClock, tried: list[Attack], repeats: int) -> dict[str, Held]:
    """Return for each attack how long its check blocked the loop; the attacks take turns.

    The first entry is the control, a millisecond of work: what it takes beyond that is noise of the machine.
    """
    rules = [ToolRules.parse(attack.rules) for attack in tried]
    seconds: dict[str, list[float]] = {"control": [], **{attack.name: [] for attack in tried}}
    for number in range(repeats + 1):
        await _settled(clock)
        await _work(0.001)
        await asyncio.sleep(0)
        seconds["control"].append(clock.held)
        for attack, parsed in zip(tried, rules, strict=True):
            await _settled(clock)
            await check_call(parsed, _TOOL, attack.arguments)
            await asyncio.sleep(0)
            seconds[attack.name].append(clock.held)
        if number == 0:  # imports and compiled patterns cost once per process
            for figures in seconds.values():
                figures.clear()
    return {name: Held(statistics.median(figures), max(figures)) for name, figures in seconds.items()}


async def _settled(clock: LoopClock) -> None:
    """Let the loop wait once, so that nothing before the attack counts."""
    await asyncio.sleep(0.001)
    clock.held = 0.0


async def _work(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def with_re(pattern: str, value: str, limit: float) -> float | None:
    """Return the seconds Python's ``re`` takes, or None if they are more than ``limit``."""
    compiled = re.compile(pattern)
    start = time.perf_counter()
    try:
        with at_most(limit):
            compiled.search(value)
    except TooLongError:
        return None
    return time.perf_counter() - start
