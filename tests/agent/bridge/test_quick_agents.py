"""``build_quickly`` returns the same agent as the constructor."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, AgentOutputSchema, ModelSettings, function_tool

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.agent.bridge.quick_agents import build_quickly
from kantan_agents.testing import ScriptedModel


@pytest.mark.parametrize("kind", [Agent, SDKAgent])
@pytest.mark.parametrize("model", [None, "gpt-5.4", "gpt-4.1", ScriptedModel([])])
@pytest.mark.parametrize("output_type", [None, AgentOutputSchema(int)])
@pytest.mark.parametrize("default", ["gpt-5.4", "gpt-4.1"])
def test_it_equals_the_constructors_agent(
    kind: Any, model: Any, output_type: Any, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_quickly(kind, {"name": "made before the default changed"})
    monkeypatch.setenv("OPENAI_DEFAULT_MODEL", default)
    options = {"name": "a", "model": model, "mcp_servers": [], "output_type": output_type}
    made, expected = build_quickly(kind, options), kind(**options)
    assert made is not None
    assert type(made) is type(expected)
    assert vars(made) == vars(expected)
    assert type(made.model_settings) is ModelSettings


def _tool() -> None:
    """Do nothing."""


def test_agents_share_no_mutable_state() -> None:
    first, second = (build_quickly(Agent, {"name": name}) for name in "ab")
    assert first is not None
    assert second is not None
    shared = [
        name
        for name, value in vars(first).items()
        if isinstance(value, (list, dict, ModelSettings)) and value is vars(second)[name]
    ]
    assert shared == []
    first.tools.append(function_tool(_tool))
    first.mcp_config["convert_schemas_to_strict"] = True
    assert second.tools == []
    third = build_quickly(Agent, {"name": "c"})
    assert third == Agent(name="c")


@pytest.mark.parametrize(
    "options",
    [
        {"name": 3},
        {"name": "a", "model": 3},
        {"name": "a", "mcp_servers": ()},
        {"name": "a", "output_type": 3},
        {"name": "a", "output_type": int},
        {"name": "a", "model_settings": ModelSettings(temperature=1)},
        {"name": "a", "hooks": None},
        {"name": "a", "unknown": 1},
        {},
    ],
    ids=str,
)
def test_options_that_need_checks_are_left_to_the_constructor(options: Any) -> None:
    assert build_quickly(Agent, options) is None
