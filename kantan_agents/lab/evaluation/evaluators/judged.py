"""An evaluator whose scores come from a judge model."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.agent.own_calls import limited
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.judge_runs import (
    ask_judge,
    judge_options,
    judged_metadata,
    parts_of,
    score_of,
    shown_to_judge,
)
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.judges import judge_agent
from kantan_agents.models.rubric import rubric_of, scale_of, with_scale
from kantan_agents.support.arguments import checked_scale, shown


def judged(
    judge: Agent[Any] | Prompt,
    *,
    name: str = "judge",
    version: str | None = None,
    scale: tuple[float, float] | None = None,
    **judge_options_given: Any,
) -> Evaluator:
    """Return an evaluator that lets a judge give a score and comments.

    The judge sees the input, the expected output, if any, and the output, as data that it must not obey. Its
    instructions may read the context of the case. Its run records the judged run as ``judged_trace_id``, so
    ``store.failed()`` and kantan-llm's ``find_failed_judges`` find the verdict.

    A verdict has at most 8,192 tokens, unless the judge's settings have ``max_tokens``. A truncated verdict
    is a failed score.

    Args:
        judge: An agent with ``output_type=RUBRIC`` or your own type with ``score`` and ``comments``, for
            example from ``judge_agent``; or the prompt that the answers come from, for ``judge_agent(prompt,
            ...)``.
        name: Name of the metric.
        version: By default a hash of the judge's instructions, model, settings and output type.
        scale: The lowest and the highest score, as for ``judge_agent``, even for an agent. A score outside
            has failed.
        **judge_options_given: For ``judge_agent``, if ``judge`` is a prompt: ``model``, ``rubric``,
            ``instructions``, ...

    Raises:
        InvalidOptionError: E75, ``judge`` is neither, its output has no score, or an option is invalid.
    """
    given = _checked_judge(judge, scale, judge_options_given)
    agent = limited(given)

    async def score(finished: FinishedCase) -> Score:
        text = shown_to_judge(*parts_of(finished.case), ("The output to judge", finished.text))
        output = await ask_judge(agent, text, finished.case, "judged", judged_metadata(finished))
        return score_of(rubric_of(output, agent.output_type) or {})

    versioned = version_of_options("judged", judge_options(given)) if version is None else version
    return Evaluator(name, versioned, score, source="model", scale=scale_of(given.given.output_type)[1])


def _checked_judge(judge: Any, scale: Any, options: dict[str, Any]) -> Agent[Any]:
    if isinstance(judge, Prompt):
        return judge_agent(judge, scale=scale, **options)
    if not isinstance(judge, Agent):
        raise InvalidOptionError(option="judge", reason=f"must be an Agent or a Prompt, not {shown(judge)}")
    if options:
        reason = f"is for judge_agent(prompt, ...), and {judge.name!r} is an agent already; set it there"
        raise InvalidOptionError(option=next(iter(options)), reason=reason)
    if judge.output_type is None:
        reason = f"{judge.name!r} answers with a text; create it with output_type=RUBRIC, or with judge_agent"
        raise InvalidOptionError(option="judge", reason=reason)
    if scale is None:
        return judge
    scaled: Agent[Any] = judge.clone(
        output_type=with_scale(judge.given.output_type, checked_scale("scale", scale))
    )
    scaled.observers = judge.observers
    return scaled
