"""Runs that wait for people: no process is needed meanwhile, and any goes on after the answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kantan_agents import DurableRuns
from kantan_agents.errors import ApprovalAnswerError, InvalidOptionError
from kantan_agents.testing import OfflineServer, function_call
from tests.durable.conftest import Scene, use_engine

_CODE = """
async def pay(amount: int) -> str:
    "Pay."
    effect(f"pay {amount}")
    return f"paid {amount}"

agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[pay], middleware=[Approve("pay"), Durable()])

async def first(runs):
    context = await agent.run_async(INPUT, {"user": "aiko"})
    assert context["result"].interruptions
    print(json.dumps({"waiting": [call.call_id for call in await runs.list_approvals()]}), flush=True)
    die()
"""

_REPLIES = [
    [function_call("pay", {"amount": 3}, call_id="c1"), function_call("pay", {"amount": 4}, call_id="c2")],
    "Done.",
]


def _asked(scene: Scene, server: OfflineServer) -> tuple[DurableRuns, str]:
    assert scene.run(_CODE, server, first=True) == [{"waiting": ["c1", "c2"]}]
    runs = DurableRuns(scene.database)
    waiting = asyncio.run(runs.list_runs(status="waiting"))
    assert [run.status for run in waiting] == ["waiting"]
    return runs, waiting[0].run_id


@pytest.fixture(params=["scene", "shared_scene", "temporal"])
def any_scene(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A scene with SQLite, one with Postgres, and one with Temporal."""
    if request.param == "temporal":
        use_engine(monkeypatch, request.getfixturevalue("temporal"))
        return request.getfixturevalue("scene")
    return request.getfixturevalue(request.param)


def test_a_run_goes_on_elsewhere_when_all_its_calls_are_answered(any_scene: Scene) -> None:
    with OfflineServer(_REPLIES) as server:
        runs, run_id = _asked(any_scene, server)
        asyncio.run(runs.approve(run_id, "c1", by="aiko", arguments={"amount": 30}))
        calls = asyncio.run(runs.list_approvals())
        # Newer SDKs write the arguments without spaces.
        assert [(call.call_id, call.tool, json.loads(call.arguments)) for call in calls] == [
            ("c2", "pay", {"amount": 4})
        ]
        asyncio.run(runs.reject(run_id, by="bob\ud83d", reason="Too much \ud83d."))
        ended = any_scene.run(_CODE, server, first=False)
    assert any_scene.effects == ["pay 30"]
    outputs = {run["run_id"]: run["output"] for run in ended}
    assert outputs[run_id] == "Done."  # the result of a run is that of the one which goes on with it
    results = [
        item["output"] for item in server.requests[-1].input if item.get("type") == "function_call_output"
    ]
    assert results == ["paid 30", "Too much \ufffd."]
    answered = asyncio.run(runs.list_approvals(answered=True))
    asyncio.run(runs.stop())
    assert [(call.answer, call.answered_by) for call in answered] == [
        ("approved", "aiko"),
        ("rejected", "bob\ufffd"),
    ]


def test_an_answer_counts_once(scene: Scene) -> None:
    with OfflineServer(_REPLIES) as server:
        runs, run_id = _asked(scene, server)

    async def answer() -> None:
        with pytest.raises(ApprovalAnswerError, match="2 calls wait, name one: c1, c2"):
            await runs.approve(run_id, by="aiko")
        with pytest.raises(ApprovalAnswerError, match="no call of this id waits"):
            await runs.approve(run_id, "c9", by="aiko")
        with pytest.raises(InvalidOptionError, match="must say who answers"):
            await runs.approve(run_id, "c1", by=" ")
        with pytest.raises(InvalidOptionError, match="must be a JSON object"):
            await runs.approve(run_id, "c1", by="aiko", arguments="[1]")
        given = await asyncio.gather(
            *(runs.reject(run_id, "c1", by=name) for name in "abcdef"), return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in given) == ["ApprovalAnswerError"] * 5 + ["NoneType"]
        with pytest.raises(ApprovalAnswerError, match="has rejected it before"):
            await runs.approve(run_id, "c1", by="aiko")
        await runs.stop()

    asyncio.run(answer())
