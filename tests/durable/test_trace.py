"""The trace of a run that two processes have made is one trace, and shows where the second one began."""

from __future__ import annotations

import json
from collections import Counter

from kantan_agents import TraceStore
from kantan_agents.testing import OfflineServer, function_call
from tests.durable.conftest import Scene

_CODE = """
from agents import flush_traces
async def look(what: str) -> str:
    "Look."
    return f"saw {what}"

async def pay(amount: int) -> str:
    "Pay, when what came before is recorded."
    await asyncio.to_thread(flush_traces)
    die_first()
    return f"paid {amount}"

agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[look, pay], middleware=[Durable()])
"""

_REPLIES = [
    [function_call("look", {"what": "a"}, call_id="c1")],
    [function_call("pay", {"amount": 3}, call_id="c2")],
    "Done.",
]


def test_it_is_one_trace_with_each_call_once_and_the_break_visible(scene: Scene) -> None:
    with OfflineServer(_REPLIES) as server:
        ended = scene.killed(_CODE, server)
    store = TraceStore(scene.traces)
    found = store.traces()
    assert [trace.metadata["agent_run_id"] for trace in found] == [ended["run_id"]]
    trace = store.trace(found[0].trace_id)
    spans = Counter(span.name or span.span_type for span in trace.spans)
    assert (spans["look"], spans["pay"], spans["went_on"]) == (1, 1, 1)
    went_on = next(span for span in trace.spans if span.name == "went_on")
    data = json.dumps(went_on.raw)
    assert '"attempt": 2' in data
    assert '"steps": 3' in data  # two answers of the model and a tool call
    # The complete record has the calls of both processes.
    assert len(trace.model_calls) == 3
    assert [call.tool.name for call in trace.tool_calls] == ["look", "pay"]
    assert found[0].output == "Done."
