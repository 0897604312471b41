"""``kantan-agents eval run``: makes the runs and prints their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import typer

from kantan_agents.cli.eval.find_agent import find_agent
from kantan_agents.cli.eval.read_cases import read_cases
from kantan_agents.cli.eval.read_evaluators import read_evaluators
from kantan_agents.cli.eval.read_variants import read_variants
from kantan_agents.cli.eval.show_evaluation import show_evaluation
from kantan_agents.cli.eval.show_progress import show_progress
from kantan_agents.cli.run.recording import check_database, recording
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_USAGE, describe
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.errors import EvaluationBudgetError, NotComparableError
from kantan_agents.lab.evaluation import Comparison, Evaluation, Progress, compare, evaluate


@attrs.frozen
class Asked:
    """What the command line asks for.

    Attributes:
        path: The database.
        cases: The file of the dataset.
        unseal: Why it is opened, if it is sealed; None to leave it sealed.
        agent: The agent.
        model: Name of its model; None for its own.
        variants: Other prompts for it, ``NAME=FILE``.
        evaluators: What gives the scores.
        judge_model: Name of the model of the evaluator ``judged``; None for that of the agent.
        options: Arguments of ``evaluate``.
    """

    path: Path
    cases: Path
    unseal: str | None
    agent: str
    model: str | None
    variants: Sequence[str]
    evaluators: Sequence[str]
    judge_model: str | None
    options: Mapping[str, Any]


def run_evaluation(asked: Asked, *, quiet: bool, as_json: bool) -> None:
    """Make the runs and print the evaluation.

    Raises:
        KantanAgentsError: Any error of ``evaluate``, of the dataset, the agent or the evaluators.
        typer.Exit: It was stopped before all runs were made.
    """
    agent = find_agent(asked.agent, asked.model)
    evaluators = read_evaluators(asked.evaluators, agent, asked.judge_model)
    variants = read_variants(agent, asked.variants)
    check_database(asked.path)
    dataset = read_cases(asked.cases, asked.unseal)
    if asked.unseal is not None and not quiet:
        typer.echo(one_line(f"test set {dataset.name!r} unsealed: {asked.unseal}"), err=True)
    reached = [Progress(0, len(dataset) * len(variants) * int(asked.options["repeats"]))]
    try:
        with recording(asked.path), show_progress(reached, quiet=quiet) as progress:
            evaluation = evaluate(
                variants,
                dataset,
                evaluators,
                agent=agent,
                store=asked.path,
                progress=progress,
                **asked.options,
            )
    except KeyboardInterrupt:
        done, total = reached[-1].done, reached[-1].total
        text = f"interrupted: {done} of {total} runs are kept; the same command goes on with the others"
        typer.echo(text, err=True)
        raise
    comparison = _compared(evaluation)
    if as_json:
        compared = None if comparison is None else comparison.to_dict()
        typer.echo(json_text({**evaluation.to_dict(), "comparison": compared}, default=str))
    elif not quiet:
        show_evaluation(evaluation, comparison)
    if evaluation.stopped is not None:
        is_budget = isinstance(evaluation.stopped, EvaluationBudgetError)
        # The error of a budget says itself how many runs are kept.
        kept = "" if is_budget else f" ({len(evaluation)} of {evaluation.planned} runs are kept)"
        typer.echo(f"error: {describe(evaluation.stopped)}{kept}", err=True)
        raise typer.Exit(EXIT_FAILED if is_budget else EXIT_USAGE)


def _compared(evaluation: Evaluation) -> Comparison | None:
    """Return the comparison of two variants; None for another number, or if they have no case in common."""
    if len(evaluation.variants) != 2:  # noqa: PLR2004 - a comparison has two sides
        return None
    a, b = evaluation.variants
    try:
        return compare(evaluation[a], evaluation[b])
    except NotComparableError:
        return None
