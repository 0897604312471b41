"""``eval run``: evaluates agents."""

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
    """The arguments; ``opened_for`` is why a held-out set is opened."""

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
    """Run the evaluation and print it."""
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
        # A budget error already states how many runs are stored.
        kept = "" if is_budget else f" ({len(evaluation)} of {evaluation.planned} runs are kept)"
        typer.echo(f"error: {describe(evaluation.stopped)}{kept}", err=True)
        raise typer.Exit(EXIT_FAILED if is_budget else EXIT_USAGE)
    made = [one for one in evaluation.results if one.variant in variants]  # not runs of earlier starts
    failed = [one for one in made if one.status == "failed"]
    first = f"{failed[0].case_id}, {failed[0].variant}: {failed[0].error}" if failed else ""
    asked.max_failed.check(len(failed), len(made), first)


def _find_agent(name: str, model: str | None) -> Agent[Any]:
    """Return an agent of ``MODULE:NAME``, with ``model`` if given, or of a file, as ``run`` does."""
    if ":" in name and not name.endswith(".md"):
        agent = load_agent(name)
        return agent if model is None else agent.clone(model=model)
    return agent_from_file(read_agent(name), model)


def _read_variants(agent: Agent[Any], entries: Sequence[str]) -> dict[str, Agent[Any] | str]:
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
    """Return a dataset; ``reason`` opens a held-out one, and is logged."""
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
    parts = [f"{count_text(progress.tokens)} tokens"]
    if progress.cost:
        parts.append(f"cost {progress.cost:.4g}")
    if progress.failed:
        parts.append(counted(progress.failed, "failure"))
    return ", ".join(parts)
