"""Guards see every run whose arm was drawn: later runs, known users, and those beside a run that hangs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks.overhead import FakeModel
from kantan_agents import Agent, record_traces
from kantan_agents.lab import promote, record_score, status_async
from kantan_agents.traces.registry import flush_all
from tests.lab.rollout.trial import V2, rollout, support, user


class Breakable(FakeModel):
    """Answers, unless the new prompt is broken; waits for a question that says so."""

    is_broken = False

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> Any:
        if "wait" in str(input):
            await asyncio.Event().wait()
        if self.is_broken and system_instructions == V2.text:
            raise RuntimeError("broken")
        return await super().get_response(system_instructions, input, *rest, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "traces.db"
    record_traces(path)
    return path


async def serve(agent: Agent[Any], numbers: range) -> int:
    """Run the agent once for each user; return how many runs have failed."""
    failed = 0
    for number in numbers:
        try:
            await agent.run_async("Hi", user(number))
        except RuntimeError:
            failed += 1
    assert await asyncio.to_thread(flush_all, 60.0)
    return failed


async def test_runs_that_fail_after_a_good_first_run_return_the_rollout(path: Path) -> None:
    model = Breakable("fine")
    agent = support(rollout(guards={"error": 0.05}), model=model)
    await serve(agent, range(60))
    assert (await status_async("support")).verdict == "continue"
    model.is_broken = True
    failed = await serve(agent, range(60))
    found = await status_async("support")
    assert (found.verdict, found.arm) == ("stop", "v2")
    assert failed < 40
    assert found.arms[1].failed == pytest.approx(failed / found.arms[1].runs), "of all runs"


async def test_known_users_are_drawn_when_the_share_grows(path: Path) -> None:
    model = Breakable("fine")
    agent = support(rollout(guards={"error": 0.05}, ramp=(0.0, 0.5, 1)), model=model)
    await serve(agent, range(60))
    model.is_broken = True
    agent._choose._shared.accept(promote("support", path))  # type: ignore[union-attr]
    failed = await serve(agent, range(60))
    found = await status_async("support")
    assert (found.verdict, found.arm) == ("stop", "v2")
    assert failed < 40
    assert "runs that are not compared: 60, units: 60" in " ".join(found.warnings)


async def test_scores_of_known_users_count_after_a_step(path: Path) -> None:
    agent = support(rollout(metric="thumb", ramp=(0.0, 0.5, 1)), model=FakeModel("fine"))
    await serve(agent, range(60))
    agent._choose._shared.accept(promote("support", path))  # type: ignore[union-attr]
    assert agent._choose is not None
    for number in range(60):
        arm = agent._choose("", user(number)).metadata["arm"]
        record_score(await agent.run_async("Hi", user(number)), "thumb", arm == "v2")
    found = await status_async("support")
    assert (found.verdict, found.arm) == ("promote", "v2")


async def test_later_scores_that_fall_are_an_alarm(path: Path) -> None:
    agent = support(rollout(metric="thumb"), model=FakeModel("fine"))
    assert agent._choose is not None
    for visit in range(2):
        for number in range(60):
            arm = agent._choose("", user(number)).metadata["arm"]
            context = await agent.run_async("Hi", user(number))
            record_score(context, "thumb", visit == 0 or arm == "v1")
    found = await status_async("support")
    assert (found.verdict, found.arm) == ("stop", "v2")


async def test_a_run_that_hangs_holds_up_no_guard(path: Path) -> None:
    model = Breakable("fine")
    agent = support(rollout(guards={"error": 0.05}), model=model)
    hanging = asyncio.create_task(agent.run_async("wait", user("slow")))
    await asyncio.sleep(0)
    model.is_broken = True
    await serve(agent, range(60))
    await asyncio.sleep(2.1)  # so long, bets wait for it
    found = await status_async("support")
    assert (found.verdict, found.arm) == ("stop", "v2")
    assert any("runs under way: 1; until they end" in one for one in found.warnings)
    hanging.cancel()
    with suppress(asyncio.CancelledError):
        await hanging


async def test_runs_under_way_never_speak_for_an_alarm(path: Path) -> None:
    agent = support(rollout(guards={"error": 0.05}), model=Breakable("fine"))
    tasks = [asyncio.create_task(agent.run_async("wait", user(number))) for number in range(60)]
    await asyncio.sleep(0.1)
    found = await status_async("support")
    assert (found.verdict, found.guards[0].p) == ("continue", 1.0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
