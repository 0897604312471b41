"""Checked by mypy and pyright in CI: what cohorts, changes and experiments infer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from typing_extensions import assert_type

from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.lab import (
    Change,
    Cohort,
    Experiment,
    NewCall,
    RunOutcome,
    UsageMetrics,
    replay_cohort,
    replay_cohort_async,
)


async def experiments(store: TraceStore, agent: Agent[Any]) -> None:
    cohort = Cohort.select(store, prompt="support", version="v2", last=timedelta(days=7), sample=10, seed=1)
    assert_type(cohort, Cohort)
    assert_type(Cohort.of(store, ["id"]), Cohort)
    changes = [
        Change.prompt(Path("prompt.md")),
        Change.prompt(Prompt("p", "v1", "Hi")),
        Change.model("m"),
        Change.settings(temperature=0),
        Change.rules({"deny": ["refund"]}),
        Change.tool("search", description="Search."),
    ]
    assert_type(changes, list[Change])
    assert_type(changes[2].of("billing"), Change)
    made = replay_cohort(cohort, agent, changes, live={"search"}, prices={"m": (1, 2)}, max_cost=1)
    assert_type(made, Experiment)
    assert_type(await replay_cohort_async(cohort, agent, changes[0]), Experiment)
    assert_type(Experiment.load(store, "name"), Experiment)
    assert_type(Experiment.load_all(store), Iterator[Experiment])
    assert_type((made.live, made.simulate), tuple[Sequence[str], str | None])
    assert_type(made.runs, Sequence[RunOutcome])
    assert_type(made.coverage, float | None)
    assert_type(made.counts, Mapping[str, int])
    assert_type(made.before, UsageMetrics)
    assert_type(made.runs[0].new_call, NewCall | None)
    Cohort.select(store, promt="support")  # type: ignore[call-arg]
    replay_cohort(cohort, agent, "model=m")  # type: ignore[arg-type]
    Change.tool(description="Search.")  # type: ignore[call-arg]
