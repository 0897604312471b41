"""Tests of users replace ``importlib.metadata.entry_points``, as they did with 0.1.x."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace
from typing import Any

import pytest

from kantan_agents import Agent, list_provider_tools, refresh_tool_providers
from kantan_agents.errors import ToolProviderInterfaceError
from kantan_agents.testing import ScriptedModel

GROUP = "kantan_agents.tools"


def look_up(word: str) -> str:
    return word


def other_tool(word: str) -> str:
    return word


class Provider:
    def list_tools(self) -> list[Any]:
        return [look_up]

    def get_tool_rules(self) -> dict[str, Any]:
        return {"deny": ["shell"]}


class Other(Provider):
    def list_tools(self) -> list[Any]:
        return [other_tool]


class Selecting:
    """What the tests of programs on 0.1.x return: an object with ``select``, whose entries only load."""

    def __init__(self, *providers: Any) -> None:
        self._entries = [SimpleNamespace(load=lambda found=found: found) for found in providers]

    def select(self, *, group: str) -> list[Any]:
        return self._entries if group == GROUP else []


REAL = EntryPoints(
    [EntryPoint("mine", f"{__name__}:Provider", GROUP), EntryPoint("x", "y:z", "console_scripts")]
)
REPLACEMENTS = {
    "no arguments": lambda: Selecting(Provider),
    "no arguments, a dict": lambda: {GROUP: Selecting(Provider).select(group=GROUP)},
    "no arguments, entry points": lambda: REAL,
    "a group": lambda *, group: Selecting(Provider).select(group=group),
    "any arguments": REAL.select,
}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    refresh_tool_providers()


@pytest.mark.parametrize("replacement", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_replaced_entry_points_are_seen_after_a_refresh(
    monkeypatch: pytest.MonkeyPatch, replacement: Any
) -> None:
    assert list_provider_tools() == []
    monkeypatch.setattr(importlib.metadata, "entry_points", replacement)
    refresh_tool_providers()
    assert list_provider_tools() == ["look_up"]
    agent = Agent("a", "x", model=ScriptedModel())
    assert agent.explain_tool("shell").allowed is False
    monkeypatch.undo()
    refresh_tool_providers()
    assert list_provider_tools() == []


def test_other_entry_points_of_the_same_replacement_are_seen_after_a_refresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed: list[Any] = [Provider]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda: Selecting(*installed))
    assert list_provider_tools() == ["look_up"]
    installed[:] = [Other]
    assert list_provider_tools() == ["look_up"]
    refresh_tool_providers()
    assert list_provider_tools() == ["other_tool"]


def test_a_test_of_0_1_x_needs_no_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_provider_tools() == []
    for provider, tools in ((Provider, ["look_up"]), (Other, ["other_tool"])):
        monkeypatch.setattr("importlib.metadata.entry_points", lambda found=provider: Selecting(found))
        assert list_provider_tools() == tools
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: Selecting(object))
    with pytest.raises(ToolProviderInterfaceError):
        Agent(name="provider-agent", instructions="Hello")
    monkeypatch.undo()
    assert list_provider_tools() == []
