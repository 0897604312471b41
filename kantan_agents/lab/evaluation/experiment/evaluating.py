"""Runs agents on a dataset and scores their answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from agents import RunConfig
from anyio.to_thread import run_sync

from kantan_agents.agent import Agent
from kantan_agents.agent.running.sync_of import sync_of
from kantan_agents.core.events import subscribe
from kantan_agents.errors import EmptyDatasetError, InvalidOptionError
from kantan_agents.lab.evaluation.dataset import Dataset, HeldOutDataset
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator, as_evaluator
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.one_case import CaseRunner
from kantan_agents.lab.evaluation.experiment.plan import Variant, Variants, find_missing_runs, variants_of
from kantan_agents.lab.evaluation.experiment.rows import (
    EvaluationRow,
    Stored,
    read_evaluations,
    read_stored,
)
from kantan_agents.lab.evaluation.experiment.spent import SpentBy, amounts_of, open_spent
from kantan_agents.lab.evaluation.experiment.work import EvaluationWork, Progress
from kantan_agents.lab.evaluation.experiment.write_rows import open_evaluation
from kantan_agents.lab.experiment.database import database_of, prepare_database, redacts
from kantan_agents.lab.experiment.identity import run_options
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.experiment.record_too import recorded
from kantan_agents.lab.experiment.run_config import checked_config, with_retry, withholds
from kantan_agents.lab.experiment.spending import Spending, spending_limits
from kantan_agents.lab.experiment.watching import notice
from kantan_agents.middleware import Retry
from kantan_agents.support.arguments import checked_int, checked_text, shown
from kantan_agents.traces.store import TraceStore

Evaluators = Evaluator | Callable[..., Any] | Iterable[Evaluator | Callable[..., Any]]


async def evaluate_async(
    variants: Variants,
    dataset: Dataset,
    evaluators: Evaluators = (),
    *,
    agent: Agent[Any] | None = None,
    repeats: int = 1,
    concurrency: int = 8,
    name: str | None = None,
    store: TraceStore | str | os.PathLike[str] | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    retry: Retry | None = None,
    context: Mapping[str, Any] | None = None,
    run_config: RunConfig | Mapping[str, Any] | None = None,
    max_turns: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Do the same as ``evaluate`` on the running event loop; if canceled, finished results stay stored."""
    if not isinstance(dataset, (Dataset, HeldOutDataset)):
        raise InvalidOptionError(option="dataset", reason=f"must be a Dataset, not {shown(dataset)}")
    cases = list(dataset)
    if not cases:
        raise EmptyDatasetError(reason=f"{dataset.name!r} has no cases")
    asked = evaluators_of(evaluators)
    times = checked_int("repeats", repeats, 1)
    workers = checked_int("concurrency", concurrency, 1)
    _check_kinds(prices=(prices, Mapping), context=(context, Mapping), retry=(retry, Retry))
    if progress is not None and not callable(progress):
        raise InvalidOptionError(option="progress", reason=f"must be a function, not {shown(progress)}")
    priced = Prices.of(prices)
    limits = spending_limits(max_tokens, max_cost, priced)
    options = {} if max_turns is None else {"max_turns": checked_int("max_turns", max_turns, 1)}
    given = dict(context or {})
    config = checked_config(run_config)
    compared = await variants_of(variants, agent, run_options(config, given, options))
    title = _default_name(dataset, compared) if name is None else checked_text("name", name)
    if not title.strip():
        raise InvalidOptionError(option="name", reason="must not be empty")
    path = database_of(store)
    total = len(cases) * len(compared) * times
    body = {
        "dataset": {"name": dataset.name, "hash": dataset.hash},
        "variants": {one.name: one.to_dict() for one in compared},
        "evaluators": {
            one.name: {"version": one.version, "better": one.better, "source": one.source} for one in asked
        },
        "repeats": times,
        "planned": total,
        "cases": [(case.id, case.hash) for case in cases],
    }
    scales = {(one.name, one.version): one.scale for one in asked if one.scale is not None}
    row, stored, spent = await run_sync(_opened, path, title, body, scales)
    units = await run_sync(lambda: list(find_missing_runs(cases, compared, times, asked, stored)))
    agents = [one.agent for one in compared]
    runner = CaseRunner(
        title,
        priced,
        with_retry(config, retry or Retry(), agents),
        given,
        options,
        await withholds(config, agents) or redacts(path),
    )
    spending = Spending(limits)
    spending.spend(amounts_of(spent))
    work = EvaluationWork(path, row, units, total, runner, spending, progress)
    if units and limits:
        await run_sync(work.learn, list(stored.rows.values()))
    async with AsyncExitStack() as stack:
        if units:
            await stack.enter_async_context(recorded(path))
        # Events of all agents: evaluators run some too.
        stack.enter_context(subscribe(notice))
        await work.make(workers)
    # The results of earlier starts may have been deleted meanwhile, and the evaluation with them.
    found = await run_sync(read_evaluations, path, title)
    return Evaluation(path, found[0] if found else row, work.stopped)


@sync_of(evaluate_async)
def evaluate() -> None:
    """Run agents on the cases of a dataset, and score their answers.

        evaluation = evaluate({"v1": support_v1, "v2": support_v2}, dataset, [exact(), polite])
        print(compare(evaluation["v1"], evaluation["v2"]).text)

    Every run is an ordinary recorded run with real tool calls; its metadata name the evaluation, the case,
    the variant and the repetition. Results and scores are stored in the trace database. Another start with
    the same name only runs and scores whatever is missing, has failed or has changed: the content of the
    case, name and definition of the variant, the options of the runs, and name and version of the evaluator.
    It does not notice changes in the code of tools, renderers and middleware, or another address of the
    model's server.

    Args:
        variants: An agent, several, or agents and prompts by name.
        dataset: The cases.
        evaluators: Evaluators, or functions of a ``FinishedCase``.
        agent: The agent that uses the prompts in ``variants``.
        repeats: Number of runs of each case.
        concurrency: Number of concurrent runs. The first start a millisecond apart.
        name: Name of the evaluation; by default built from the names of the dataset and the variants.
        store: The trace database, or its path; by default the one of ``record_traces``. If nothing in this
            process records to it, the evaluation does.
        prices: For each model, the prices of a million input and output tokens, for costs.
        max_tokens: Limit on the input and output tokens of all starts together, including judges and failed
            attempts. A run starts only if the most expensive one so far would still fit.
        max_cost: Limit on their cost, in the currency of ``prices``. An earlier start without prices does not
            count.
        retry: How to retry failed model calls, in all agents of a run; by default ``Retry()``. Variants with
            any ``Retry`` or retry settings stay unchanged.
        context: Values for the context of each run; values of the case override them.
        run_config: The SDK's ``RunConfig`` of each run, or a dict of its fields.
        max_turns: As for ``run_async``.
        progress: Called after each run.

    Raises:
        EmptyDatasetError: E102, there is no case.
        HeldOutDatasetError: E106, the dataset is a held-out test set.
        InvalidOptionError: E75, an argument is invalid.
        TraceDatabaseError: E60, the database cannot be read or changed at the start.

    Returns:
        The evaluation. If the model is unreachable, the budget is used up or the database fails meanwhile,
        ``stopped`` is the error, and finished results stay stored.
    """


def evaluators_of(given: Evaluators) -> tuple[Evaluator, ...]:
    """Return evaluators, created from functions where necessary."""
    listed: Any = [given] if isinstance(given, Evaluator) or callable(given) else given
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
        reason = f"must be an evaluator, a function, or several, not {shown(listed)}"
        raise InvalidOptionError(option="evaluators", reason=reason)
    found = tuple(as_evaluator(one) for one in listed)
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidOptionError(option="evaluators", reason=f"two are named {name!r}; give one a name")
        inner = next((other for other in names if other.startswith(f"{name}.")), None)
        if inner is not None:
            reason = f"{name!r} and {inner!r} may give the same metric; give one another name"
            raise InvalidOptionError(option="evaluators", reason=reason)
    return found


def _check_kinds(**given: tuple[Any, type]) -> None:
    for option, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            reason = f"must be a {kind.__name__}, not {shown(value)}"
            raise InvalidOptionError(option=option, reason=reason)


def _default_name(dataset: Dataset, variants: Iterable[Variant]) -> str:
    return f"{dataset.name}: {', '.join(one.name for one in variants)}"


def _opened(
    path: Path,
    name: str,
    body: Mapping[str, Any],
    scales: Mapping[tuple[str, str], tuple[float, float]],
) -> tuple[EvaluationRow, Stored, SpentBy]:
    prepare_database(path)
    row = open_evaluation(path, name, body)
    return row, read_stored(path, row, scales), open_spent(path, row)
