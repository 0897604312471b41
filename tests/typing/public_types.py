"""Checked by mypy (``tests/typing/test_types.py`` and CI): what the public types infer to."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from typing_extensions import assert_type

from kantan_agents import DEFAULT_STAGES, RUBRIC, Agent, Next, Pipeline, Prompt, Run, Stage, judge


async def stage(run: Run, call_next: Next) -> None:
    assert_type(run.context, dict[str, Any])
    assert_type(run.instructions, str | None)
    assert_type(call_next(run), Awaitable[None])
    await call_next(run)


class Counting:
    async def __call__(self, run: Run, call_next: Next) -> None:
        await call_next(run)


def two(text: str, context: dict[str, Any]) -> str:
    return text


async def three(text: str, context: dict[str, Any], allow_env: bool) -> str:
    return text


async def use() -> None:
    agent = Agent("a", Prompt("p", "v1", "text", meta={"k": 1}), middleware=[stage, Counting()])
    assert_type(await agent.run_async("hi"), dict[str, Any])
    assert_type(agent.run("hi", {}, max_turns=3), dict[str, Any])
    assert_type(agent.pipeline, Pipeline)
    assert_type(Pipeline(DEFAULT_STAGES).before("call_sdk", stage), Pipeline)
    assert_type(Pipeline(DEFAULT_STAGES).replace(Counting, ("mine", stage)), Pipeline)
    assert_type(agent.instructions, str | Prompt)
    assert_type(judge(0.5, ["x"]), dict[str, Any])
    assert_type(RUBRIC(score=1, comments=[]).score, float)
    Agent("a", "b", renderer=two)
    Agent("a", "b", renderer=three, metadata=lambda context: {"k": context["k"]})
    as_stage: Stage = Counting()
    Agent("a", "b", middleware=[("name", as_stage)])


def mistakes() -> None:
    Agent("a", None)  # type: ignore[arg-type]
    Agent("a", "b", history="5")  # type: ignore[arg-type]
    Agent("a", "b", middleware=[two])  # type: ignore[list-item]
    Prompt("n", 1, "t")  # type: ignore[arg-type]
