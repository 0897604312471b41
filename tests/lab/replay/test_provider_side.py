"""What only the provider knows is refused by name before a replay begins, unless it is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

import agents
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseOutputItem

from kantan_agents import Agent, Run, replay_async
from kantan_agents.errors import NotReplayableError
from kantan_agents.lab.replay.provider_side import hosted_work
from kantan_agents.testing import OfflineServer, assistant_message
from kantan_agents.testing.pytest_plugin import Replayed
from kantan_agents.traces.capture import ModelAnswer, ModelCallRecord, ModelRequest, ToolDefinition
from tests.lab.replay.kinds_of_runs import scripted
from tests.lab.replay.taping import Case, Taped, Tapes

SEARCH: Any = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x"},
}
LOCAL = {
    "message",
    "reasoning",
    "compaction",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "apply_patch_call",
    "computer_call",
}
KINDS = [kind.model_fields["type"].annotation for kind in get_args(get_args(ResponseOutputItem)[0])]


def searching(live: bool) -> Agent[Any]:
    model = scripted(live, [SEARCH, assistant_message("Found")])
    return Agent("a", "Hi", model=model, tools=[agents.WebSearchTool()])


async def test_the_work_of_a_hosted_tool_is_refused_by_name(tapes: Tapes) -> None:
    taped = await tapes.record(Case(searching(live=True)))
    begun: list[str] = []

    async def note(run: Run, call_next: Any) -> None:
        begun.append(run.id)
        await call_next(run)

    agent = searching(live=False).clone(middleware=[note])
    with pytest.raises(NotReplayableError, match=r"E93.*'web_search'.*model call 1 of 'a'.*accept="):
        await replay_async(taped.recording, agent)
    with pytest.raises(NotReplayableError, match="'web_search'"):
        await replay_async(taped.recording, agent, accept=["file_search", "conversation_id"])
    assert not begun
    replayed = await tapes.replays(taped, searching(live=False), accept="web_search")
    assert replayed.output == "Found"


async def test_a_hosted_tool_that_was_not_used_is_in_nobodys_way(tapes: Tapes) -> None:
    with OfflineServer(["Found"]) as server:
        agent = Agent("a", "Hi", model=server.bundle("m"), tools=[agents.WebSearchTool()])
        taped = await tapes.record(Case(agent))
    assert (await tapes.replays(taped, agent)).output == "Found"


async def conversing(tapes: Tapes, **options: Any) -> tuple[Taped, Agent[Any]]:
    with OfflineServer(["Found"]) as server:
        prompt = options.pop("prompt", None)
        agent = Agent("a", "Hi", model=server.bundle("m"), prompt=prompt)
        return await tapes.record(Case(agent, options=options)), agent


@pytest.mark.parametrize(
    ("name", "value"),
    [("previous_response_id", "resp_1"), ("conversation_id", "conv_1"), ("prompt", {"id": "pmpt_1"})],
)
async def test_what_the_provider_holds_is_refused_by_name(tapes: Tapes, name: str, value: Any) -> None:
    taped, agent = await conversing(tapes, **{name: value})
    assert name in taped.recording.root.model_calls[0].request.options
    with pytest.raises(NotReplayableError, match=rf"provider holds.*model call 1 of 'a'.*'{name}'"):
        await replay_async(taped.recording, agent)
    assert (await tapes.replays(taped, agent, accept=(name,))).output == "Found"


async def test_each_thing_at_the_provider_needs_its_own_name(tapes: Tapes) -> None:
    taped, agent = await conversing(tapes, previous_response_id="resp_1", prompt={"id": "pmpt_1"})
    for accepted, missing in (("previous_response_id", "prompt"), ("prompt", "previous_response_id")):
        with pytest.raises(NotReplayableError, match=f"accept='{missing}'"):
            await replay_async(taped.recording, agent, accept=accepted)
    replayed = await tapes.replays(taped, agent, accept=["prompt", "previous_response_id"])
    assert replayed.output == "Found"


async def test_the_work_of_a_hosted_tool_inside_another_run_is_refused(tapes: Tapes) -> None:
    def agent(live: bool) -> Agent[Any]:
        inner = searching(live).clone(name="inner")
        call: Any = {"type": "function_call", "call_id": "c", "name": "inner", "arguments": '{"input": "x"}'}
        return Agent("a", "Hi", model=scripted(live, [call], "ok"), tools=[inner])

    taped = await tapes.record(Case(agent(live=True)))
    with pytest.raises(NotReplayableError, match=r"'web_search'.*of 'inner'"):
        await replay_async(taped.recording, agent(live=False))
    assert (await tapes.replays(taped, agent(live=False), accept="web_search")).output == "ok"


async def test_the_fixture_of_pytest_refuses_and_accepts_the_same(tapes: Tapes, tmp_path: Path) -> None:
    taped = await tapes.record(Case(searching(live=True)))
    replayed = Replayed(tmp_path, updates=True, report=lambda _: None)
    with pytest.raises(NotReplayableError, match="'web_search'"):
        replayed(taped.recording, searching(live=False))
    assert replayed(taped.recording, searching(live=False), accept="web_search").output == "Found"


def answered(kinds: Sequence[str], tools: Sequence[ToolDefinition] = ()) -> ModelCallRecord:
    answer = ModelAnswer([{"type": kind} for kind in kinds])
    request = ModelRequest(None, "q", tools=tools)
    now = datetime.now(timezone.utc)
    return ModelCallRecord("a", None, "m", "", "responses", request, answer, None, now, 0.0)


def test_every_kind_of_item_of_the_client_is_local_or_refused() -> None:
    kinds = [value for kind in KINDS for value in get_args(kind)]
    assert {"web_search_call", "mcp_call", "message"} <= {*kinds}
    for kind in kinds:
        assert (list(hosted_work(answered([kind]))) == []) == (kind in LOCAL), kind
    names = {kind: name for kind in kinds for name in hosted_work(answered([kind]))}
    assert (names["mcp_call"], names["image_generation_call"]) == ("hosted_mcp", "image_generation")
    assert names["tool_search_output"] == names["tool_search_call"] == "tool_search"


@pytest.mark.parametrize(
    ("environment", "found"), [(None, []), ({"type": "local"}, []), ({"type": "container_auto"}, ["shell"])]
)
def test_a_shell_is_refused_where_it_runs_at_the_provider(environment: Any, found: list[str]) -> None:
    options = {} if environment is None else {"environment": environment}
    shell = ToolDefinition("shell", "shell", options=options)
    assert list(hosted_work(answered(["shell_call"], [shell]))) == found


@given(st.lists(st.sampled_from(sorted(LOCAL))), st.text())
def test_an_unknown_kind_of_item_is_never_overlooked(local: list[str], unknown: str) -> None:
    assert not list(hosted_work(answered(local)))
    assert len(list(hosted_work(answered([*local, unknown])))) == (unknown not in LOCAL)
