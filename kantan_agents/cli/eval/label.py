"""The options of ``kantan-agents eval label``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.eval.options import EvaluationArgument, MetricOption, VariantOption
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption


def label(
    evaluation: EvaluationArgument,
    metric: MetricOption,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who answers.", show_default=False)],
    db: DatabaseOption = DATABASE,
    sample: Annotated[
        Optional[int],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Option(
            "--sample",
            metavar="N",
            min=1,
            help="N of the runs, at random; by default all.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="The same seed draws the same sample.")
    ] = 0,
    scale: Annotated[
        str,
        typer.Option("--scale", metavar="SCALE", help="yesno, 0-1, or grades such as 1-5."),
    ] = "0-1",
    variant: VariantOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON; the questions go to standard error.")
    ] = False,
) -> None:
    """Judge results of an evaluation yourself, one after the other.

    Each result is shown without the score of the judge, which follows after
    your answer, and without its variant, which follows when all variants of
    the case are answered. Each answer is stored at once; the same command
    goes on where you stopped.

    Answers: y, n or a number; c adds a comment, s skips, u takes the last
    answer back, q quits.

    Exit codes: 0 done or quit, 2 bad arguments or database, 130 interrupted.
    """
    from kantan_agents.cli.eval.label_results import Asked, label_results

    asked = Asked(db, evaluation, metric, by, sample, seed, scale, tuple(variant or ()) or None)
    label_results(asked, as_json=as_json)
