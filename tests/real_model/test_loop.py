"""The loop from recorded runs to a better prompt, on a real model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from kantan_agents import Agent, Prompt, Rollout
from kantan_agents.agent.own_calls import limited
from kantan_agents.lab import (
    Case,
    Dataset,
    FinishedCase,
    compare,
    evaluate_async,
    evaluator,
    history,
    improve_async,
    judge_agent,
    promote_async,
    record_score_async,
    status,
)
from kantan_agents.lab.evaluation.evaluators import judged, tokens
from kantan_agents.testing import OfflineServer
from tests.real_model.recorded_agents import RecordedAgents, settings

RUNS = 60
USERS = 12
TASK = "Answer in a few words."
LONG = Prompt(
    "namer", "v1", f"{TASK} Never tell a story, never explain why, and do not repeat what was asked. {TASK}"
)
SHORT = Prompt("namer", "v2", TASK)


@evaluator
def says_something(finished: FinishedCase) -> bool:
    return bool(finished.text.strip())


async def test_from_recorded_runs_to_a_better_prompt(recorded: RecordedAgents, tmp_path: Path) -> None:
    agent = recorded.agent("namer", LONG, model_settings=settings(6))
    await run_at_once(agent, [{"user": number} for number in range(RUNS)])
    recorded.flush()
    runs = recorded.store.traces(prompt="namer", version="v1", limit=None)
    assert [run.status for run in runs] == ["ok"] * RUNS

    dataset = Dataset.from_traces(recorded.store, prompt="namer", version="v1")
    assert len(dataset) == RUNS
    evaluation = await evaluate_async(
        {"v1": LONG, "v2": SHORT}, dataset.sample(12), says_something, agent=agent, name="shorter"
    )
    assert (len(evaluation), list(evaluation.failed), evaluation.stopped) == (24, [], None)
    comparison = compare(evaluation["v1"], evaluation["v2"], metrics=["tokens", "says_something"])
    # The old prompt is longer by more tokens than an answer may have.
    assert comparison["tokens"].verdict == "better"
    assert comparison["says_something"].verdict in ("better", "worse", "cannot tell")

    await roll_out(recorded)
    await improve_to_the_end(recorded, agent, min(run.input_tokens for run in runs), tmp_path)
    recorded.scripted = {"improve-reflection"}
    recorded.flush()
    for run in recorded.store.traces(agent="namer", limit=None):  # for the replays
        if run.metadata["prompt_version"] != "v1":
            prompt = Prompt("namer", run.metadata["prompt_version"], TASK)
            recorded.agent("namer", prompt, model_settings=settings(6))


async def run_at_once(agent: Agent[Any], contexts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run an agent with a question of its own for each context, eight at a time."""
    places = anyio.CapacityLimiter(8)

    async def one(number: int) -> None:
        async with places:
            contexts[number] = await agent.run_async(f"Name color number {number}.", contexts[number])

    async with anyio.create_task_group() as group:
        for number in range(len(contexts)):
            group.start_soon(one, number)
    return contexts


async def roll_out(recorded: RecordedAgents) -> None:
    """Give the new prompt to half of the users, and then to all."""
    rollout = Rollout(
        {"v1": LONG, "v2": SHORT},
        shares={"v1": 0.5, "v2": 0.5},
        ramp=(0.5, 1),
        unit="user",
        metric="short",
        guards={"error": 0.2},
    )
    agent = recorded.agent("live", rollout, model_settings=settings(6))
    for context in await run_at_once(agent, [{"user": number} for number in range(USERS)]):
        await record_score_async(context, "short", float(len(context["result"].final_output) < 20))
    recorded.flush()
    now = await anyio.to_thread.run_sync(status, "live")
    assert sum(arm.units for arm in now.arms) == USERS
    assert (await promote_async("live")).status == "promoted"
    (context,) = await run_at_once(agent, [{"user": "new"}])
    recorded.flush()
    assert recorded.store.traces()[0].metadata["arm"] == "v2"
    assert [change.action for change in history("live")] == ["start", "promote"]


async def improve_to_the_end(recorded: RecordedAgents, agent: Agent[Any], most: int, folder: Path) -> None:
    """Search with a judge that wants fewer tokens than any run of the old prompt can have."""
    steps = []
    with OfflineServer(lambda _: {"changes": "Shorter.", "prompt": TASK}) as reflection:
        found = await improve_async(
            agent,
            recorded.store,
            judge=tokens(most=most),
            reflection_model=reflection.bundle(),
            max_tokens=100_000,
            rounds=2,
            out=folder / "improve",
            progress=lambda now: steps.append(now.step),
        )
    assert found.reason is None and found.new is not None
    assert (found.new.text, sum(found.cases.values())) == (TASK, RUNS)
    assert [one.status for one in found.candidates] == ["old", "winner"]
    assert found.comparison is not None
    assert list(dict.fromkeys(steps)) == ["baseline", "search", "test"]
    assert all(path.exists() for path in found.files.values())
    assert found.rollout_command.startswith("kantan-agents rollout promote namer")


async def test_a_real_judge_keeps_to_its_scale_or_has_no_score(recorded: RecordedAgents) -> None:
    agent = recorded.agent("namer", SHORT, model_settings=settings(6))
    judge = judge_agent(SHORT, model=agent.model, model_settings=settings(60))
    recorded.add(limited(judge))  # as `judged` asks it
    dataset = Dataset("colors", [Case(f"Name color number {number}.") for number in range(4)])
    evaluation = await evaluate_async({"v2": SHORT}, dataset, judged(judge), agent=agent, name="judged")
    scores = [result.scores["judge"] for result in evaluation["v2"].results]
    assert len(scores) == len(dataset)
    for score in scores:
        assert score.error if score.value is None else 0 <= score.value <= 1
