"""Durable runs that the older layout has stored: one was killed, others wait or have ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kantan_agents import DurableRuns, TraceStore, record_traces
from kantan_agents.testing import OfflineServer
from tests.old_layout import shop
from tests.old_layout.conftest import Copied


async def _made(place: Path, server: OfflineServer, effects: list[str]) -> dict[str, Any]:
    agent = shop.Clerk(server, effects.append).agent
    found: dict[str, Any] = {}
    database = f"sqlite:///{place}"
    ids = {run.status: run.run_id for run in await DurableRuns(database).list_runs()}
    async with DurableRuns(
        database, agents=[agent], queues=["later"], keep_events=True, look_interval=0.1
    ) as runs:
        found["killed"] = await runs.result(ids["running"], timeout=60)
        found["queued"] = await runs.result(ids["queued"], timeout=60)
        found["finished"] = await runs.result(ids["finished"], timeout=60)
        found["failed"] = (await runs.get(ids["failed"])).error
        (call,) = await runs.list_approvals()
        await runs.approve(call.run_id, call.call_id, by="aiko")
        found["signed"] = await runs.result(call.run_id, timeout=60)
        found["events"] = [event.data["type"] async for event in runs.events(ids["running"])]
        await runs.unschedule("leap")
    return found


def test_stored_runs_are_finished_and_what_was_done_is_not_done_again(
    copied: Copied, server: OfflineServer
) -> None:
    traces, effects = copied("traces.db"), list[str]()
    recorder = record_traces(traces)
    found = asyncio.run(_made(copied("runs.db"), server, effects))
    recorder.shutdown()
    # The older process has looked, failed, paid and delegated; its parcel was not sent.
    assert sorted(effects) == ["send Oslo", "sign contract"]
    assert found["killed"].output == {"order": "sold", "amount": 3}
    assert found["killed"].context["bill"] == {"order": "sold", "amount": 3}
    assert found["killed"].context["customer"] == "Aiko"
    assert found["queued"].output == found["finished"].output == {"order": "waited", "amount": 2}
    assert found["signed"].output == {"order": "signed", "amount": 1}
    assert "no such model" in found["failed"]
    kinds = found["events"]
    assert (kinds.count("run_started"), kinds.count("went_on")) == (2, 1)  # its own, and the subagent's
    assert kinds[-1] == "run_finished"
    # One request for each of the three runs that were finished here.
    assert len(server.requests) == 3
    sold = next(request for request in server.requests if request.input[0]["content"] == "Sell.")
    results = [item["output"] for item in sold.input if item.get("type") == "function_call_output"]
    assert "'seen': 'sky'" in results[0]
    # Newer versions of the SDK do not show the model what the error was.
    assert results[1].startswith("An error occurred while running the tool. Please try again.")
    assert results[2:] == ["paid 3", "It is fine.", "sent to Oslo"]
    trace = TraceStore(traces).trace(found["killed"].trace_id)
    assert trace is not None
    assert "went_on" in {span.name for span in trace.spans}
