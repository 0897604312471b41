"""The stored events of a run: a reader that is interrupted goes on after the last number it saw."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kantan_agents import DurableRuns
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.events import Events
from kantan_agents.errors import DurableRunNotFoundError
from kantan_agents.testing import OfflineServer, function_call
from tests.durable.conftest import Scene

_STREAMED = """
async def look(what: str) -> str:
    "Look."
    return f"saw {what}"

agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[look], middleware=[Durable()])
OPTIONS = {"keep_events": True}

def kill(event):
    if event.type == "text_delta" and WHEN == "in a text":
        import time
        time.sleep(0.3)  # what came before is stored by another thread meanwhile
        die()
    if event.type == "tool_call_finished" and WHEN == "after a tool":
        die()

async def first(runs):
    agent.subscribe(kill)
    async with agent.stream("Go.") as run:
        async for event in run:
            pass
"""


async def _read(runs: DurableRuns, run_id: str, after: int = 0) -> list[Any]:
    return [event async for event in runs.events(run_id, after=after)]


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("when", ["in a text", "after a tool"])
async def test_a_reader_of_a_killed_run_misses_nothing(scene: Scene, when: str) -> None:
    replies = [[function_call("look", {"what": "a"}, call_id="c1")], "It is a long answer."]
    with OfflineServer([*replies, *replies[1:]]) as server:
        code = f"WHEN = {when!r}\n{_STREAMED}"
        ended = scene.killed(code, server)
    assert ended["output"] == "It is a long answer."
    runs = DurableRuns(scene.database)
    events = await _read(runs, ended["run_id"])
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    kinds = [event.data["type"] for event in events if event.data["type"] != "text_delta"]
    for kind in ("run_started", "tool_call_started", "tool_call_finished", "run_finished", "went_on"):
        assert kinds.count(kind) == 1, kinds
    assert kinds.count("model_call_finished") == 2
    went_on = next(event.sequence for event in events if event.data["type"] == "went_on")
    text = "".join(
        event.data["text"]
        for event in events
        if event.data["type"] == "text_delta" and event.sequence > went_on
    )
    assert text == "It is a long answer."
    middle = events[len(events) // 2].sequence
    assert await _read(runs, ended["run_id"], middle) == events[middle:]

    with pytest.raises(DurableRunNotFoundError, match=r"E154.*'nobody'.*runs\.sqlite3"):
        await _read(runs, "nobody")
    await runs.stop()


async def test_events_hold_no_keys(scene: Scene) -> None:
    secret = "sk-proj-" + "a1b2" * 10
    with OfflineServer([f"The key is {secret}. The option is --password="]) as server:
        code = (
            'agent = Agent("a", "Help.", model="gpt-6.1-terra", middleware=[Durable()])\n'
            'OPTIONS = {"keep_events": True}\n'
            "async def first(runs):\n"
            '    await agent.run_async("Go.")\n'
        )
        scene.run(code, server, first=True, dies=False)
    runs = DurableRuns(scene.database)

    run = (await runs.list_runs())[0]
    events = await _read(runs, run.run_id)
    assert secret not in str(events)
    assert "The option is --password=" in str(events)
    await runs.stop()


async def test_events_of_an_earlier_version_have_today_s_types(scene: Scene) -> None:
    code = (
        'agent = Agent("a", "Help.", model="gpt-6.1-terra", middleware=[Durable()])\n'
        "async def first(runs):\n"
        '    await agent.run_async("Go.")\n'
    )
    with OfflineServer(["Yes."]) as server:
        scene.run(code, server, first=True, dies=False)
    runs = DurableRuns(scene.database)
    run = (await runs.list_runs())[0]
    stored = Events(RunDatabase(scene.database))
    body = {"type": "tool_call_refused", "run_id": run.run_id}
    stored.add(run.run_id, [(90, f"tool_call_refused/{run.run_id}/c1/1", json.dumps(body))])
    (event,) = stored.after(run.run_id, 89)
    assert event.data == {**body, "type": "tool_call_denied"}
    assert f"tool_call_denied/{run.run_id}/c1/1" in stored.known(run.run_id)[1]
    await runs.stop()
