"""What happens to a tool call that was being made when its process ended."""

from __future__ import annotations

from kantan_agents.testing import OfflineServer, function_call
from tests.durable.conftest import Scene

_PAY = """
from kantan_agents.interception import current_tool_call

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
