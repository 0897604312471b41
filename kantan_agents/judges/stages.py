"""The stages of a judgement: how each asks, and how its reply is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from kantan_agents.agent import Agent
from kantan_agents.judges.replies import Reply, reply_of, unusable_reply
from kantan_agents.judges.schemas import Evaluation, Judgment
from kantan_agents.judges.tags import read_tags
from kantan_agents.judges.verdict import Method


@attrs.frozen
class Reading:
    """What a reply comes to.

    Attributes:
        step: Number of the rule, counted from 1; None if the reply does not decide.
        method: What decided: that of the stage, or the tag where the stage offers it.
        reason: The judge's reason.
        problem: Why the reply does not decide.
    """

    step: int | None
    method: Method
    reason: str | None = None
    problem: str | None = None


@attrs.frozen(eq=False)
class Stage:
    """One way to ask.

    Attributes:
        name: Name of the stage, which is also its method.
        agent: The judge of this stage, made once.
        read: Makes a reading of the reply.
    """

    name: Method
    agent: Agent[Any]
    read: Callable[[Reply], Reading]

    async def ask(self, content: str, context: Any, options: dict[str, Any]) -> Reply:
        """Return the judge's reply to ``content``.

        Raises:
            Exception: Whatever ends the judge's run, but for a reply in which there is no answer.
        """
        try:
            done = await self.agent.run_async(content, context, **options)
        except Exception as error:
            reply = unusable_reply(error)
            if reply is None:
                raise
            return reply
        return reply_of(done["result"])


def read_judgment(reply: Reply, count: int, tag: str) -> Reading:
    """Read a reply to the stage ``structured_output``; without a judgment, the tag it may have instead."""
    method: Method = "structured_output"
    if isinstance(reply.output, Judgment):
        step, problem = _in_range("step", reply.output.step, count)
        return Reading(step, method, reply.output.reason if step else None, problem)
    found = read_tags(reply.said or reply.text or "", count, tag)
    if found.step is not None:
        return Reading(found.step, "phase3_tag")
    return Reading(None, method, problem=f"no JSON object with step and reason, and {found.problem}")


def read_tag(reply: Reply, count: int, tag: str) -> Reading:
    """Read a reply to the stage ``phase3_tag``."""
    found = read_tags(reply.text or "", count, tag)
    return Reading(found.step, "phase3_tag", problem=found.problem)


def read_evaluation(reply: Reply, count: int, method: Method) -> Reading:
    """Read a reply to the stage ``ai_judge`` or ``ai_judge_fallback``."""
    if not isinstance(reply.output, Evaluation):
        return Reading(None, method, problem="no JSON object with matched_index and reason")
    step, problem = _in_range("matched_index", reply.output.matched_index, count)
    return Reading(step, method, reply.output.reason if step else None, problem)


def _in_range(name: str, number: int, count: int) -> tuple[int | None, str | None]:
    if 1 <= number <= count:
        return number, None
    return None, f"{name} {number} is of no rule from 1 to {count}"
