"""``improve``: searches for a better version of a prompt, and tests it on held-out cases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from agents import ModelSettings, RunConfig

from kantan_agents.agent import Agent
from kantan_agents.agent.running.sync_of import sync_of
from kantan_agents.core.prompt import Prompt
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.improve.arguments import checked_arguments
from kantan_agents.lab.improve.improvement import Improvement, ImproveProgress
from kantan_agents.lab.improve.parts import SPLIT
from kantan_agents.lab.improve.whole_search import WholeSearch
from kantan_agents.lab.replay.cohort import Cohort
from kantan_agents.traces.store import TraceStore

Judge = Evaluator | Agent[Any] | Prompt | Callable[..., Any]
"""The judges that ``improve`` accepts: an evaluator, an agent, the prompt of a judge, or a function."""


async def improve_async(
    agent: Agent[Any],
    store: TraceStore,
    *,
    judge: Judge,
    prompt: str | None = None,
    version: str | None = None,
    cohort: Cohort | None = None,
    last: timedelta | None = None,
    sample: int | None = None,
    limit: int | None = None,
    reflection_model: Any = None,
    reflection_settings: ModelSettings | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    rounds: int = 10,
    minibatch: int = 3,
    split: tuple[float, float, float] = SPLIT,
    seed: int = 0,
    perfect: float | None = None,
    max_length: int | None = None,
    max_cost_increase: float = 0.2,
    live: Iterable[str] = (),
    concurrency: int = 4,
    context: Mapping[str, Any] | None = None,
    run_config: RunConfig | Mapping[str, Any] | None = None,
    new_version: str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[ImproveProgress], None] | None = None,
) -> Improvement:
    """Do the same as ``improve`` on the running event loop; if canceled, finished work stays stored."""
    return await WholeSearch(checked_arguments(**locals())).run()


@sync_of(improve_async)
def improve() -> None:
    """Search for a better version of a prompt, and test the best one on held-out recorded runs.

        improvement = improve(support, store, judge=judged(critic), max_tokens=500_000)
        print(improvement.new, improvement.comparison.text)

    A reflection model reads recorded runs with their mistakes, and proposes new versions. Each version runs
    on recorded runs by ``replay_cohort``: the models are really called, and tools do not run. GEPA chooses
    the version that the next one is based on. The best one is compared with the old one on the held-out test
    set, which is opened for it alone. Nothing goes live by itself.

    Finished work is stored in the working folder and in the database. Started again with the same arguments,
    even after a kill, the search resumes.

    Args:
        agent: The current agent. Its instructions are a ``Prompt``.
        store: The trace database.
        judge: Gives a score from 0 to ``perfect`` to each run. A run without a score, or with a score outside
            the judge's scale, counts as 0.
        prompt: Name of the prompt; by default the agent's prompt.
        version: The version to improve; by default the agent's version.
        cohort: The recorded runs, such as ``Cohort.select`` finds; by default all of this agent, prompt and
            version.
        last: Only runs of this period until now.
        sample: How many runs to choose at random.
        limit: At most this many of the latest runs.
        reflection_model: The model that proposes versions: a name, or any other value that
            ``Agent(model=...)`` takes; by default the agent's model.
        reflection_settings: Its settings. Without a ``max_tokens``, a reply has at most 8,192 tokens and
            ``max_length``, and without ``extra_args={"timeout": seconds}``, it takes at most 600 seconds.
        max_tokens: The most input and output tokens of all runs, judges and reflections together, including
            earlier starts.
        max_cost: The most that they may cost, in the currency of ``prices``.
        prices: For each model, the prices of a million input and output tokens.
        rounds: The most rounds; each proposes at most one version.
        minibatch: The number of training runs on which a version is based and first tried.
        split: Fractions for training, validation and the held-out test, by conversation: a ``group_id``, or
            all runs whose first message is equal.
        seed: The same seed repeats the same search. The held-out cases do not depend on it.
        perfect: The best score of the judge; by default the highest of its scale, or 1.
        max_length: The most characters of a version; by default twice the old version's, at least 2,000.
        max_cost_increase: How much more a run may use than with the old version, as a fraction: cost with
            prices, otherwise tokens.
        live: Names of tools that may really run if a recording does not answer a call.
        concurrency: The number of concurrent runs.
        context: More values for the context of each run than those that the templates read, which are
            recorded.
        run_config: As for ``replay_cohort``.
        new_version: Name of the new version; by default the next number.
        out: The working folder; by default ``NAME-improve`` in the current directory.
        progress: Called after each step.

    Raises:
        PromptNotImprovableError: E120, the agent has no such prompt, or the database no such version.
        CohortTooSmallError: E121, the recorded runs are too few for a verdict; the error has the number
            needed.
        ImproveBudgetError: E122, the budget does not suffice for one candidate, or not for the held-out test.
        WorkingFolderError: E123, the working folder belongs to something else, or cannot be used.
        OptimizerMissingError: E124, ``gepa`` is not installed.
        JudgeFailedError: E125, the judge gives no usable score.
        ReflectionFailedError: E126, the reflection model gives no valid reply.
        EmptyCohortError: E97, no trace matches.
        InvalidOptionError: E75, an option is invalid.
        TraceDatabaseError: E60, the database cannot be used.

    Returns:
        The result; ``new`` is None if no version is shown to be better.
    """
