"""The options of ``kantan-agents improve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.eval.run import JudgeModelOption as _JudgeModelOption
from kantan_agents.cli.replay.cohort import AgentOption, ConcurrencyOption, ContextOption, LiveOption
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.output_options import JsonOption
from kantan_agents.cli.terminal.prices import PriceOption, check_has_prices, read_prices

# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.
PromptArgument = Annotated[str, typer.Argument(metavar="PROMPT", help="Name of the prompt, such as support.")]
JudgeOption = Annotated[
    str,
    typer.Option(
        "--judge",
        metavar="WHAT",
        help="The score from 0 to 1: judged, an evaluator as for `eval run`, or MODULE:NAME for an "
        "evaluator, a judge's agent or a function in a Python module.",
        show_default=False,
    ),
]
JudgeModelOption = _JudgeModelOption
BudgetOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--budget",
        metavar="TOKENS",
        help="Maximum number of tokens of all runs, judges and reflections together, such as 500000, "
        "500k or 2M. This or --max-cost is required.",
        show_default=False,
    ),
]
CostOption = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--max-cost",
        metavar="AMOUNT",
        min=0,
        help="Maximum cost of them; needs --price.",
        show_default=False,
    ),
]
CohortOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--cohort",
        metavar="KEY=VALUE",
        help="The recorded runs: last=AGE, limit=N, sample=N or trace=ID, separated by commas; may be "
        "repeated. By default all of this version.",
        show_default=False,
    ),
]
VersionOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--version",
        metavar="VERSION",
        help="The version that is improved; by default the agent's.",
        show_default=False,
    ),
]
ReflectionOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--reflection-model",
        metavar="NAME",
        help="The model that proposes new versions; by default the agent's.",
        show_default=False,
    ),
]
ReflectionTokensOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--reflection-tokens",
        metavar="N",
        min=1,
        help="Maximum number of tokens of a reply of that model; by default 8,192 and the length of a "
        "version.",
        show_default=False,
    ),
]
ReflectionTimeoutOption = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--reflection-timeout",
        metavar="SECONDS",
        min=1,
        help="How long a reply may take; by default 600 seconds.",
        show_default=False,
    ),
]
LengthOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--max-length",
        metavar="N",
        min=1,
        help="Maximum length of a version in characters; by default twice the old one, at least 2,000.",
        show_default=False,
    ),
]
NewVersionOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--new-version",
        metavar="VERSION",
        help="Name of the new version; by default the next number.",
        show_default=False,
    ),
]
OutOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--out",
        metavar="DIR",
        help="The working folder; by default PROMPT-improve.",
        show_default=False,
    ),
]


def improve(
    prompt: PromptArgument,
    agent: AgentOption,
    judge: JudgeOption,
    judge_model: JudgeModelOption = None,
    budget: BudgetOption = None,
    max_cost: CostOption = None,
    price: PriceOption = None,
    cohort: CohortOption = None,
    version: VersionOption = None,
    reflection_model: ReflectionOption = None,
    reflection_tokens: ReflectionTokensOption = None,
    reflection_timeout: ReflectionTimeoutOption = None,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds",
            metavar="N",
            min=1,
            help="Maximum number of rounds; in each, at most one version is proposed.",
        ),
    ] = 10,
    minibatch: Annotated[
        int,
        typer.Option(
            "--minibatch",
            metavar="N",
            min=1,
            help="On how many training runs a version is written and tried first.",
        ),
    ] = 3,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="The same seed makes the same search.")
    ] = 0,
    perfect: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--perfect",
            metavar="SCORE",
            help="The best score of the judge; by default the highest of its scale, or 1.",
            show_default=False,
        ),
    ] = None,
    max_length: LengthOption = None,
    max_cost_increase: Annotated[
        float,
        typer.Option(
            "--max-cost-increase",
            metavar="SHARE",
            min=0,
            help="How much more a run may use than with the old version: cost with --price, else tokens.",
        ),
    ] = 0.2,
    live: LiveOption = None,
    concurrency: ConcurrencyOption = 4,
    context: ContextOption = None,
    new_version: NewVersionOption = None,
    out: OutOption = None,
    db: DatabaseOption = DATABASE,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show neither a progress bar nor the result.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Search for a better version of a prompt, from recorded runs and their scores.

    A model reads recorded runs with their scores and proposes new versions.
    Each is run again on recorded runs: the models are really called, and tools
    do not run. The best one is compared with the old one on held-out cases,
    which are opened for it alone.

    The new version is written to a file. Nothing goes live: the last line is
    the command that gives it to the first users.

    Finished work is stored. After Ctrl-C, the same command resumes where it
    stopped.

    Example: kantan-agents improve support --agent shop:support --judge judged --budget 500k --cohort last=7d

    Exit codes: 0 a new version was written, 1 no version is shown to be better,
    or it failed, 2 bad arguments, files or database, 130 interrupted.
    """
    from kantan_agents.cli.improve.read_arguments import (
        read_budget,
        read_cohort,
        read_reflection_settings,
    )
    from kantan_agents.cli.terminal.inputs import read_context
    from kantan_agents.errors import InvalidOptionError

    if budget is None and max_cost is None:
        reason = "say what the search may use: --budget TOKENS, or --max-cost AMOUNT with --price"
        raise InvalidOptionError(option="--budget", reason=reason)
    check_has_prices(max_cost, price)
    trace_ids, selection = read_cohort(cohort or ())
    options = {
        "prompt": prompt,
        "version": version,
        **selection,
        "reflection_model": reflection_model,
        "reflection_settings": read_reflection_settings(reflection_tokens, reflection_timeout),
        "max_tokens": None if budget is None else read_budget(budget),
        "max_cost": max_cost,
        "prices": read_prices(price),
        "rounds": rounds,
        "minibatch": minibatch,
        "seed": seed,
        "perfect": perfect,
        "max_length": max_length,
        "max_cost_increase": max_cost_increase,
        "live": tuple(live or ()),
        "concurrency": concurrency,
        "context": read_context(context),
        "new_version": new_version,
        "out": out,
    }

    from kantan_agents.cli.improve.run_search import ImproveArguments, run_search

    asked = ImproveArguments(db, agent, judge, judge_model, trace_ids, options)
    run_search(asked, quiet=quiet, as_json=as_json)
