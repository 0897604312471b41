"""``judged``: an evaluator that asks a model for a score."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.judge_runs import (
    ask_judge,
    joined,
    judge_options,
    judged_metadata,
    parts_of,
    shown_to_judge,
)
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.judges import judge_agent
from kantan_agents.lab.judges.answer_limit import limited
from kantan_agents.models.rubric import rubric_of
from kantan_agents.support.arguments import shown


def judged(
    judge: Agent[Any] | Prompt,
    *,
    name: str = "judge",
    version: str | None = None,
    **judge_options_given: Any,
) -> Evaluator:
    """Return an evaluator that asks a judge for a score and comments.

    The judge is shown the input, the expected output if there is one, and the output, each as data that it
    must not obey. Its run is recorded with the trace id of the judged run as ``judged_trace_id``, so
    ``store.failed()`` and kantan-llm's ``find_failed_judges`` find the verdict. Its instructions may read the
    context of the case.

    A verdict has at most 8,192 tokens, unless the settings of the judge have a ``max_tokens``. One that is
    cut off is a failed score.

    Args:
        judge: An agent with ``output_type=RUBRIC`` or your own type with ``score`` and ``comments``, such as
            one from ``judge_agent``; or the prompt that the answers come from, for
            ``judge_agent(prompt, ...)``.
        name: Name of the metric.
        version: By default a hash of the judge's instructions, model, settings and output type.
        **judge_options_given: For ``judge_agent``, if ``judge`` is a prompt: ``model``, ``rubric``,
            ``instructions``, ...

    Raises:
        InvalidOptionError: E75, ``judge`` is neither, its output has no score, or an option is invalid.
    """
    given = _checked_judge(judge, judge_options_given)
    agent = limited(given)

    async def score(finished: FinishedCase) -> Score:
        text = shown_to_judge(*parts_of(finished.case), ("The output to judge", finished.text))
        output = await ask_judge(agent, text, finished.case, "judged", judged_metadata(finished))
        rubric = rubric_of(output, agent.output_type) or {}
        return Score(rubric.get("score"), comment=joined(rubric.get("comments")), source="model")

    versioned = version_of_options("judged", judge_options(given)) if version is None else version
    return Evaluator(name, versioned, score, source="model")


def _checked_judge(judge: Any, options: dict[str, Any]) -> Agent[Any]:
    if isinstance(judge, Prompt):
        return judge_agent(judge, **options)
    if not isinstance(judge, Agent):
        raise InvalidOptionError(option="judge", reason=f"must be an Agent or a Prompt, not {shown(judge)}")
    if options:
        reason = f"is for judge_agent(prompt, ...), and {judge.name!r} is an agent already; set it there"
        raise InvalidOptionError(option=next(iter(options)), reason=reason)
    if judge.output_type is None:
        reason = f"{judge.name!r} answers with a text; create it with output_type=RUBRIC, or with judge_agent"
        raise InvalidOptionError(option="judge", reason=reason)
    return judge
