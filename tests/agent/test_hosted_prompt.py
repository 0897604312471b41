"""``prompt``: a prompt that OpenAI stores, with or without instructions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import agents
import pytest

from kantan_agents import Agent, Prompt, run_result
from kantan_agents.errors import InstructionsRequiredError, InvalidOptionError
from kantan_agents.testing import OfflineServer
from tests.conftest import TraceDB

STORED = {"id": "pmpt_1", "version": "3", "variables": {"city": "Oslo"}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OfflineServer]:
    with OfflineServer(lambda _: "Oslo.") as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


def request_of(server: OfflineServer) -> dict[str, Any]:
    body: dict[str, Any] = server.requests[-1].body
    return {key: value for key, value in body.items() if key not in ("input", "include")}


def test_an_agent_with_a_stored_prompt_sends_what_the_plain_sdk_sends(server: OfflineServer) -> None:
    asyncio.run(agents.Runner.run(agents.Agent(name="geo", prompt=STORED), "hi"))  # type: ignore[arg-type]
    plain = request_of(server)
    assert run_result(Agent("geo", prompt=STORED).run("hi")).final_output == "Oslo."
    assert request_of(server) == plain
    assert plain["prompt"] == STORED
    assert "instructions" not in plain
    assert "model" not in plain


def test_it_sends_so_as_a_tool_a_clone_and_with_the_sdks_runner(server: OfflineServer) -> None:
    agent = Agent("geo", prompt=STORED)
    for one in (agent.clone(name="b"), agent.sdk_agent.clone(name="c")):
        asyncio.run(agents.Runner.run(one, "hi"))
        assert "instructions" not in request_of(server)
        assert request_of(server)["prompt"] == STORED
    asyncio.run(agents.Runner.run(agent.sdk_agent.clone(prompt=None), "hi"))
    assert request_of(server)["instructions"] == ""


def test_own_instructions_and_a_model_are_sent_with_the_prompt(server: OfflineServer) -> None:
    Agent("geo", "For {{ $ctx.who }}", prompt=STORED, model="gpt-4.1").run("hi", {"who": "Bo"})
    body = request_of(server)
    assert (body["instructions"], body["model"], body["prompt"]) == ("For Bo", "gpt-4.1", STORED)


def test_the_trace_names_the_stored_prompt_and_its_version(server: OfflineServer, traces: TraceDB) -> None:
    Agent("geo", prompt=STORED).run("hi")
    (found,) = traces.traces(metadata={"prompt_id": "pmpt_1", "prompt_version": "3"})
    assert found.metadata is not None
    assert found.metadata["prompt_name"] == "geo"
    assert found.metadata["hosted_prompt_id"] == "pmpt_1"
    Agent("both", Prompt("p", "v1", "text"), prompt=STORED).run("hi")
    (both,) = traces.traces(metadata={"hosted_prompt_version": "3", "prompt_version": "v1"})
    assert both.metadata is not None
    assert both.metadata["prompt_name"] == "p"


@pytest.mark.parametrize("is_async", [True, False])
def test_the_prompt_of_a_function_is_sent_and_recorded_once(
    server: OfflineServer, traces: TraceDB, is_async: bool
) -> None:
    def choose(data: Any) -> Any:
        return {"id": f"pmpt_{data.context.context['who']}", "version": "1"}

    async def choose_later(data: Any) -> Any:
        return choose(data)

    agent = Agent("geo", prompt=choose_later if is_async else choose)
    agent.run("hi", {"who": "Bo"})
    assert request_of(server)["prompt"]["id"] == "pmpt_Bo"
    spans: list[Any] = traces.spans(name="agent_run")
    assert [span.raw["span_data"]["data"] for span in spans] == [
        {"agent_name": "geo", "hosted_prompt_id": "pmpt_Bo", "hosted_prompt_version": "1"}
    ]
    assert len(list(traces.traces())) == 1


def test_without_a_prompt_instructions_are_required() -> None:
    with pytest.raises(InstructionsRequiredError):
        Agent("a", prompt=None)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ({}, "must have the id of the stored prompt"),
        ({"id": ""}, "must have the id of the stored prompt"),
        ("pmpt_1", "not str"),
        (Prompt("p", "v1", "text"), "as instructions"),
    ],
)
def test_a_prompt_of_another_form_is_e75(prompt: Any, reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason):
        Agent("a", prompt=prompt)
