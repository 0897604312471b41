"""A database of real runs for the tests of the page: tools, a refusal, a hand-off, errors, a verdict."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore, record_traces
from kantan_agents.testing import OfflineServer, ScriptedToolCall


class Refund(BaseModel):
    """A structured output."""

    refund: bool
    reason: str


def look_up_order(order_id: str) -> str:
    """Look up an order."""
    if order_id == "13":
        raise RuntimeError("the warehouse does not answer")
    return f"order {order_id} is on its way"


def refund_order(order_id: str) -> str:
    """Refund an order."""
    return f"refunded {order_id}"


def answer(request: Any) -> Any:
    """Answer as a model that follows its instructions."""
    instructions, last = request.system_instructions or "", request.input[-1]
    if "You judge" in instructions:
        return {"score": 0.4, "comments": ["empathy - nobody says sorry"]}
    if "You decide" in instructions:
        return {"refund": False, "reason": "too young"}
    if last.get("type") == "function_call_output":
        if "E15" in last["output"]:
            return ScriptedToolCall("transfer_to_billing", {})
        return f"Answer: {last['output']}"
    question = last["content"]
    if "broken" in question:
        return {"status": 401, "text": "the key has expired"}
    tool = "refund_order" if "refund" in question else "look_up_order"
    return ScriptedToolCall(tool, {"order_id": question.split()[-1]})


RULES = {"params": {"refund_order": {"order_id": {"pattern": "^[0-3]"}}}}


def make(path: Path, questions: int = 3) -> None:
    """Record runs: questions, then a judge, a failed run, a failed tool, and a refused call, the newest."""
    recorder = record_traces(path)
    with OfflineServer(answer) as server:
        billing = Agent(
            "billing", "You decide.", model=server.bundle("gpt"), output_type=Refund, output_dest="decision"
        )
        agent = Agent(
            "support",
            Prompt("help", "v2", "Help {{ $ctx.name }}."),
            model=server.bundle("gpt"),
            tools=[look_up_order, refund_order],
            handoffs=[billing],
        )
        for number in range(questions):
            agent.run(f"Where is order {100 + number}", {"name": "Aiko"})
        judged = TraceStore(path).trace("LAST").trace_id
        judge = Agent(
            "judge",
            "You judge.",
            model=server.bundle("gpt"),
            output_type=RUBRIC,
            output_dest="verdict",
            metadata={"judged_trace_id": judged},
        )
        judge.run("Is it kind?")
        with suppress(Exception):  # the failed run is recorded, which is all that matters here
            agent.run("This is broken 1", {"name": "Aiko"})
        agent.run("Where is order 13", {"name": "Aiko"})
        agent.run("Please refund 7", {"name": "Aiko", "tool_rules": RULES})
    recorder.shutdown()
