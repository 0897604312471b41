"""Of many skills the model sees those that fit the input, and it can search for others."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent, Skill, skill_tools
from kantan_agents.testing import ScriptedModel
from tests.tools.skills.conftest import call, fill, outputs, shown

THINGS = ("invoice", "contract", "poster", "recipe", "playlist", "map", "poem", "budget", "survey", "logo")
SKILLS = [
    Skill(f"{verb}-{thing}", f"How to {verb} a {thing}")
    for verb in ("create", "check", "translate", "archive", "print")
    for thing in THINGS
]


def agent_of(*steps: Any, skills: Any = SKILLS, **options: Any) -> tuple[Agent, Any]:
    model = ScriptedModel([*steps, "Done."])
    return Agent("clerk", "Help.", model=model, tools=[fill, *skill_tools(skills, **options)]), model


async def test_the_best_matches_are_shown_and_stay_the_same_for_the_whole_run() -> None:
    agent, model = agent_of(
        call("FindSkills", query="translate poems"), call("Skill", name="translate-poem"), top_n=3
    )
    context = await agent.run_async("Please check this contract")
    assert shown(model, 0) == ["fill", "Skill", "ReadSkillFile", "FindSkills"]
    descriptions = {one.tools[1].description for one in model.calls}
    assert len(descriptions) == 1
    (description,) = descriptions
    assert "- check-contract: How to check a contract" in description
    assert description.count("\n- ") == 3
    assert "There are 50 skills." in description
    found, read = outputs(context)
    assert "- translate-poem: How to translate a poem" in found.splitlines()[1]
    assert read.startswith('{"skill": "translate-poem"')


async def test_few_skills_are_all_listed_in_the_same_bytes_for_every_input() -> None:
    agent, model = agent_of(skills=SKILLS[:40])
    await agent.run_async("Please check this contract")
    model.enqueue("Done.")
    await agent.run_async("Print a map")
    assert shown(model, 0) == ["fill", "Skill", "ReadSkillFile"]
    first, second = (one.tools[1].description for one in model.calls)
    assert first == second
    assert first.count("\n- ") == 40


async def test_descriptions_too_long_to_list_are_searched() -> None:
    long = [Skill(f"skill-{number}", "word " * 200) for number in range(20)]
    agent, model = agent_of(skills=long)
    await agent.run_async("Hello")
    assert "FindSkills" in shown(model, 0)


async def test_a_skill_that_the_rules_refuse_is_not_found() -> None:
    agent, model = agent_of(call("FindSkills", query="check contract"), top_n=50)
    rules = {"deny": ["Skill(check-contract)"]}
    context = await agent.run_async("Check this contract", {"tool_rules": rules})
    assert "check-contract" not in outputs(context)[0] + model.calls[0].tools[1].description


class Broken:
    """A retriever that fails."""

    def index(self, documents: Any) -> Any:
        raise ConnectionError("no network")


async def test_a_failing_retriever_leaves_skills_to_choose_from(caplog: pytest.LogCaptureFixture) -> None:
    agent, model = agent_of(call("FindSkills", query="x"), retriever=Broken(), top_n=2)
    context = await agent.run_async("Hello")
    assert model.calls[0].tools[1].description.count("\n- ") == 2
    assert outputs(context)[0].count("\n- ") == 2
    assert "tools_not_retrieved" in caplog.text
