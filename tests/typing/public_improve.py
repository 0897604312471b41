"""Checked by mypy and pyright in CI: what a search for a better prompt infers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from typing_extensions import assert_type

from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.lab import (
    Candidate,
    Cohort,
    Comparison,
    Improvement,
    ImproveProgress,
    Opening,
    evaluator,
    improve,
    improve_async,
)
from kantan_agents.lab.evaluation.evaluators import exact


@evaluator
def polite(finished: Any) -> bool:
    return "please" in str(finished.text)


def noted(progress: ImproveProgress) -> None:
    assert_type(progress.round, int)
    assert_type(progress.best_score, float | None)


async def searches(store: TraceStore, agent: Agent[Any], critic: Agent[Any], prompt: Prompt) -> None:
    found = improve(agent, store, judge=polite, last=timedelta(days=7), max_tokens=1_000_000, progress=noted)
    assert_type(found, Improvement)
    assert_type(found.new, Prompt | None)
    assert_type(found.comparison, Comparison | None)
    assert_type(found.opening, Opening | None)
    assert_type(found.candidates, Sequence[Candidate])
    assert_type(found.winner, Candidate | None)
    assert_type(found.text, str)
    assert_type(found.files, Mapping[str, Path])
    assert_type(found.rollout_code, Sequence[str])
    assert_type(found.to_dict(), dict[str, Any])
    for judge in (critic, prompt, exact(), polite):
        cohort = Cohort.select(store, agent="support")
        made = await improve_async(
            agent,
            store,
            judge=judge,
            cohort=cohort,
            prices={"m": (1, 2)},
            max_cost=5,
            live=["search"],
            out=Path("out"),
        )
        assert_type(made, Improvement)
