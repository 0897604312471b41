"""What happens to a tool call that was being made when its process ended."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, RecordedRequest, function_call
from tests.durable.conftest import Scene

_PAY = """
from kantan_agents.core.interception import current_tool_call

async def pay(amount: int) -> str:
    "Pay."
    effect(f"pay {amount} {current_tool_call.get().idempotency_key}")
    die_first()
    return f"paid {amount}"
"""

_REPLIES = [[function_call("pay", {"amount": 3}, call_id="c1")], "Done."]


def test_a_call_in_flight_is_made_again_with_the_same_key(scene: Scene) -> None:
    with OfflineServer(_REPLIES) as server:
        ended = scene.killed(
            _PAY + 'agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[pay], middleware=[Durable()])',
            server,
        )
    assert ended["output"] == "Done."
    assert len(scene.effects) == 2
    assert scene.effects[0] == scene.effects[1]
    assert ended["run_id"] in scene.effects[0]


@pytest.mark.usefixtures("each_engine")
def test_a_call_that_may_be_made_once_ends_the_run_instead(scene: Scene) -> None:
    with OfflineServer(_REPLIES) as server:
        ended = scene.killed(
            _PAY + 'agent = Agent("a", "Help.", model="m", tools=[pay], middleware=[Durable(once=["pay"])])',
            server,
        )
    assert ended["status"] == "failed"
    assert "[E153]" in ended["error"]
    assert "'pay'" in ended["error"]
    assert f"idempotency key {ended['run_id']}-c1" in ended["error"]
    assert len(scene.effects) == 1


def test_the_tool_of_a_slash_command_is_not_run_again(scene: Scene) -> None:
    code = """
    async def look(what: str) -> str:
        "Look."
        effect(f"look {what}")
        return f"saw {what}"

    class Die(Middleware):
        async def run(self, run, call_next):
            await call_next(run)
            die_first()

    agent = Agent(
        "a",
        "Help.",
        model="m",
        tools=[look],
        middleware=[Durable(), Die(), SlashCommands({"allow": ["look"]})],
    )
    INPUT = "/look a"
    """
    with OfflineServer(()) as server:
        ended = scene.killed(code, server)
    assert ended["output"] == "saw a"
    assert scene.effects == ["look a"]


def test_runs_that_a_tool_starts_go_on_too(scene: Scene) -> None:
    code = """
    async def book(flight: str) -> str:
        "Book."
        effect(f"book {flight}")
        return f"booked {flight}"

    helper = Agent("helper", "You book.", model="gpt-6.1-terra", tools=[book], middleware=[Durable()])

    async def travel() -> str:
        "Travel."
        made = []
        for flight in ("NH1", "NH2"):
            context = await helper.run_async(flight)
            made.append(context["result"].final_output)
        die_first()
        return ", ".join(made)

    agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[travel], middleware=[Durable()])
    """

    def answer(request: RecordedRequest) -> Any:
        last = request.input[-1]
        if "You book" in (request.system_instructions or ""):
            if last.get("type") == "function_call_output":
                return last["output"]
            return [function_call("book", {"flight": last["content"]}, call_id="b1")]
        is_done = last.get("type") == "function_call_output"
        return last["output"] if is_done else [function_call("travel", {}, call_id="c1")]

    with OfflineServer(answer) as server:
        ended = scene.killed(code, server)
    assert ended["output"] == "booked NH1, booked NH2"
    assert scene.effects == ["book NH1", "book NH2"]
    assert len(server.requests) == 6
