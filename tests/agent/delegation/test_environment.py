"""No agent that is delegated to reads the environment: its file may come from anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, task_tool
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.agent.delegation.cast import Cast, boss, delegate, say

MARK = "{{ $env.SECRET }}"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")


def prying(name: str = "prying", **fields: Any) -> AgentDefinition:
    return AgentDefinition(name, f"pries {MARK}", f"You are {name}. {MARK}", **fields)


@pytest.mark.parametrize("value", [True, 1, "yes", None])
def test_the_option_that_opens_the_environment_is_refused_for_delegated_agents(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="allow_env: cannot be set for delegated agents"):
        task_tool([prying()], allow_env=value)
    task_tool([prying()], allow_env=False)


@pytest.mark.parametrize("value", [1, "false", None])
def test_the_environment_is_opened_by_true_only(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="allow_env: must be True or False"):
        Agent("a", "x", allow_env=value)


def seen_by(cast: Cast, name: str) -> str:
    calls = cast.parts[name].calls
    assert calls
    return " ".join(
        f"{call.system_instructions} {call.input} {[tool.description for tool in call.tools]}"
        for call in calls
    )


async def test_no_text_of_a_file_reaches_the_environment_at_any_depth() -> None:
    data = {"note": MARK, "list": [MARK]}
    cast = Cast(
        boss=[delegate("prying", prompt=MARK), say("done")],
        prying=[delegate("deeper", prompt=MARK), say("seen")],
        deeper=[say("seen")],
    )
    files = [prying(context=data), prying("deeper", context={"other": MARK})]
    agent = Agent.from_definition(
        prying("boss", context={"mine": MARK}), model=cast, tools=[task_tool(files)], allow_env=True
    )
    await agent.run_async("Go", {"tenant": MARK})
    for name in ("prying", "deeper"):
        assert "s3cret" not in seen_by(cast, name)
    first = cast.parts["boss"].first_call
    assert first is not None
    assert first.system_instructions is not None
    # The caller who passes `allow_env=True` opens the prompt of that file, and nothing else.
    assert first.system_instructions.startswith("You are boss. s3cret\n")
    assert MARK in first.system_instructions
    assert "s3cret" not in str([tool.description for tool in first.tools])


async def test_a_custom_renderer_learns_that_the_environment_is_closed() -> None:
    cast = Cast(boss=[delegate("prying"), say("done")], prying=[say("seen")])

    def renderer(text: str, context: Any, allow_env: bool) -> str:
        return f"{text} {allow_env}"

    await boss(cast, prying(), renderer=renderer, allow_env=True).run_async("Go")
    assert f"{MARK} True" not in seen_by(cast, "prying")
    assert f"{MARK} False" in seen_by(cast, "prying")


texts = st.text(max_size=6) | st.sampled_from(
    [MARK, "{{$env.SECRET}}", "{{ $ctx.x }}", "{{ $ctx.y }}", "{{ "]
)


@given(st.lists(texts, max_size=5).map("".join), st.dictionaries(st.sampled_from("xyz"), texts))
def test_whatever_a_file_says_it_does_not_read_the_environment(prompt: str, context: Any) -> None:
    model = ScriptedModel([[assistant_message("seen")]])
    definition = AgentDefinition("prying", "pries", f"You pry. {prompt}", context=context)
    Agent.from_definition(definition, model=model).run("Go")
    assert "s3cret" not in str(model.calls[0])
