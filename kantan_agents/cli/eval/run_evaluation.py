"""``kantan-agents eval run``: makes the runs and prints their scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.agents.agent_to_run import read_agent
from kantan_agents.cli.eval.finished_evaluation import FinishedEvaluation, junit_target, write_junit
from kantan_agents.cli.eval.read_evaluators import read_evaluators
from kantan_agents.cli.eval.show_evaluation import show_evaluation
from kantan_agents.cli.replay.load_agent import load_agent
from kantan_agents.cli.run.agent_from_file import agent_from_file
from kantan_agents.cli.run.recording import check_database, recording
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_USAGE, describe
from kantan_agents.cli.terminal.inputs import read_text
from kantan_agents.cli.terminal.max_failed import MaxFailed
from kantan_agents.cli.terminal.output_options import FormOptions
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import (
    EvaluationBudgetError,
    HeldOutDatasetError,
    InvalidOptionError,
)
from kantan_agents.lab.evaluation import (
    Dataset,
    HeldOutDataset,
    Progress,
    evaluate,
)
from kantan_agents.lab.evaluation.comparing.how import checked_looks

_VARIANT: Final = "--variant"
_BASELINE: Final = "baseline"
_OPEN: Final = "--open-held-out"


@attrs.frozen
class EvaluationArguments:
    """What the command line asks for.

    Attributes:
        path: The database.
        cases: The file of the dataset.
        opened_for: Why it is opened, if it is held out; None to leave it closed.
        agent: The agent.
        model: Name of its model; None for its own.
        variants: Other prompts for it, ``NAME=FILE``.
        evaluators: What gives the scores.
        judge_model: Name of the model of the evaluator ``judged``; None for that of the agent.
        options: Arguments of ``evaluate``.
        max_failed: How many runs may fail.
        junit: The file for JUnit XML; None for none.
        looks: For how many looks the verdicts hold; None for the default.
    """

    path: Path
    cases: Path
    opened_for: str | None
    agent: str
    model: str | None
    variants: Sequence[str]
    evaluators: Sequence[str]
    judge_model: str | None
    options: Mapping[str, Any]
    max_failed: MaxFailed
    junit: str | None
    looks: str | None


def run_evaluation(asked: EvaluationArguments, form: FormOptions, *, quiet: bool) -> None:
    """Make the runs and print the evaluation.

    Raises:
        KantanAgentsError: Any error of ``evaluate``, of the dataset, the agent or the evaluators.
        typer.Exit: It was stopped before all runs were made, or too many failed.
    """
    looks = checked_looks("--looks", asked.looks)
    agent = _find_agent(asked.agent, asked.model)
    evaluators = read_evaluators(asked.evaluators, agent, asked.judge_model)
    variants = _read_variants(agent, asked.variants)
    check_database(asked.path)
    target = None if asked.junit is None else junit_target(asked.junit, asked.path, asked.cases)
    dataset = _read_cases(asked.cases, asked.opened_for)
    if asked.opened_for is not None and not quiet:
        typer.echo(one_line(f"test set {dataset.name!r} opened: {asked.opened_for}"), err=True)
    reached = [Progress(0, len(dataset) * len(variants) * int(asked.options["repeats"]))]
    try:
        with recording(asked.path), _show_progress(reached, quiet=quiet) as progress:
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
    if target is not None:
        write_junit(target, evaluation)
    found = FinishedEvaluation.of(evaluation, looks)
    if not form.print(found, found.to_dict) and not quiet:
        show_evaluation(evaluation, found.comparison)
    if evaluation.stopped is not None:
        is_budget = isinstance(evaluation.stopped, EvaluationBudgetError)
        # The error of a budget says itself how many runs are kept.
        kept = "" if is_budget else f" ({len(evaluation)} of {evaluation.planned} runs are kept)"
        typer.echo(f"error: {describe(evaluation.stopped)}{kept}", err=True)
        raise typer.Exit(EXIT_FAILED if is_budget else EXIT_USAGE)
    made = [one for one in evaluation.results if one.variant in variants]  # not those of earlier starts
    failed = [one for one in made if one.status == "failed"]
    first = f"{failed[0].case_id}, {failed[0].variant}: {failed[0].error}" if failed else ""
    asked.max_failed.check(len(failed), len(made), first)


def _find_agent(name: str, model: str | None) -> Agent[Any]:
    """Return the agent.

    Args:
        name: The name of an agent file, the path of one that ends with ``.md``, or ``MODULE:NAME``.
        model: Replaces the model of an agent in a module; for one from a file, as ``run`` does.

    Raises:
        AgentNotFoundError, AgentFileError, InvalidDefinitionError: E32, E30, E31, as ``read_agent``.
        InvalidOptionError: E75, there is no such object in a module, or the file has no prompt.
        ModelNotFoundError: E19, there is no such model.
    """
    if ":" in name and not name.endswith(".md"):
        agent = load_agent(name)
        return agent if model is None else agent.clone(model=model)
    return agent_from_file(read_agent(name), model)


def _read_variants(agent: Agent[Any], entries: Sequence[str]) -> dict[str, Agent[Any] | str]:
    """Return the agent and the other prompts for it, by name.

    Args:
        agent: The agent, which is named by the version of its prompt.
        entries: Other prompts, ``NAME=FILE``.

    Raises:
        InvalidOptionError: E75, an entry cannot be read, a file is empty, or two have one name.
        FileArgumentError: E79, a file cannot be read.
    """
    prompt = agent.instructions
    first = prompt.version if isinstance(prompt, Prompt) else _BASELINE
    variants: dict[str, Agent[Any] | str] = {first: agent}
    for entry in entries:
        name, mark, path = entry.partition("=")
        if not mark or not name.strip() or not path:
            raise InvalidOptionError(option=_VARIANT, reason=f"must be NAME=FILE, not {entry!r}")
        if name in variants:
            whose = "is the version of the agent's own prompt" if name == first else "is given twice"
            raise InvalidOptionError(option=_VARIANT, reason=f"{name!r} {whose}; choose another name")
        text = read_text(Path(path))
        if not text.strip():
            raise InvalidOptionError(option=_VARIANT, reason=f"{path} is empty, and a prompt must not be")
        variants[name] = text
    return variants


def _read_cases(path: Path, reason: str | None) -> Dataset:
    """Return the dataset in a file.

    Args:
        path: The file.
        reason: Why a held-out test set is opened, which is logged; None to leave it closed.

    Raises:
        DatasetFileError: E100, the file cannot be read, or is not a dataset.
        HeldOutDatasetError: E106, it is held out, and there is no reason to open it.
        InvalidOptionError: E75, the reason is empty, or the file is not held out.
    """
    if reason is not None and not reason.strip():
        raise InvalidOptionError(option=_OPEN, reason="must say why the test set is opened")
    try:
        dataset = Dataset.load(path)
    except HeldOutDatasetError as error:
        if reason is not None:
            return HeldOutDataset.load(path).open(reason)
        hint = f"keep it for the last evaluation, and then open it with {_OPEN} REASON"
        raise HeldOutDatasetError(dataset=error.dataset, reason=hint) from error
    if reason is not None:
        raise InvalidOptionError(option=_OPEN, reason=f"{path} is not held out; leave the option out")
    return dataset


@contextmanager
def _show_progress(reached: list[Progress], *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Note how far an evaluation is, and show it on standard error if that is a terminal.

    Args:
        reached: Its last item is replaced by the newest progress.
        quiet: Whether to show nothing.
    """

    def note(progress: Progress) -> None:
        reached[-1] = progress

    if quiet or not sys.stderr.isatty():
        yield note
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Progress) -> None:
            note(progress)
            bar.update(task, completed=progress.done, total=progress.total, description=_spent_text(progress))

        yield show


def _spent_text(progress: Progress) -> str:
    """Return what the runs of this start have used, and how many have failed."""
    parts = [f"{count_text(progress.tokens)} tokens"]
    if progress.cost:
        parts.append(f"cost {progress.cost:.4g}")
    if progress.failed:
        parts.append(counted(progress.failed, "failure"))
    return ", ".join(parts)
