"""A durable run that goes on in another process stays under the limit of the skill it has chosen."""

from __future__ import annotations

from kantan_agents.testing import OfflineServer, function_call
from tests.durable.conftest import Scene

_CODE = """
from kantan_agents import Skill, skill_tools

async def fill() -> str:
    "Fill a form."
    effect("fill")
    die_first()
    return "filled"

async def shell() -> str:
    "Run a command."
    effect("shell")
    return "run"

skills = skill_tools([Skill("forms", "Fills forms", allowed_tools=("fill",))])
agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[fill, shell, *skills], middleware=[Durable()])
"""


def test_the_limit_of_a_choice_that_was_kept_holds_in_the_next_process(scene: Scene) -> None:
    replies = [
        [function_call("Skill", {"name": "forms"}, call_id="c1")],
        [function_call("fill", {}, call_id="c2")],
        [function_call("shell", {}, call_id="c3")],
        "Done.",
    ]
    with OfflineServer(replies) as server:
        ended = scene.killed(_CODE, server)
    assert ended["output"] == "Done."
    assert scene.effects == ["fill", "fill"]
