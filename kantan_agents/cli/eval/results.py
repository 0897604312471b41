"""The options of the commands of ``kantan-agents eval`` that read stored evaluations."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.eval.options import AArgument, BArgument, EvaluationOption, ForceOption, MetricsOption
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.traces.options import JsonOption, LimitOption


def list_(db: DatabaseOption = DATABASE, limit: LimitOption = 20, as_json: JsonOption = False) -> None:
    """List the newest evaluations.

    Exit codes: 0 listed, even if there is none, 2 bad arguments or database.
    """
    from kantan_agents.cli.eval.list_evaluations import list_evaluations

    list_evaluations(db, limit=limit, as_json=as_json)


def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The evaluation that `list` shows, or LAST for the newest.")
    ],
    db: DatabaseOption = DATABASE,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed", help="Only runs that have failed, or with a failed score or a score below 0.5."
        ),
    ] = False,
    metric: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--metric", metavar="METRIC", help="Only this metric, the worst run first.", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most N runs.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show an evaluation: the scores of each variant, and each run with its trace.

    `kantan-agents traces show ID` shows the trace of a run.

    Exit codes: 0 shown, 2 no such evaluation, or a bad database.
    """
    from kantan_agents.cli.eval.show_runs import Wanted, show_runs

    show_runs(db, name, Wanted(failed, metric, limit), as_json=as_json)


def compare(
    a: AArgument,
    b: BArgument,
    db: DatabaseOption = DATABASE,
    evaluation: EvaluationOption = None,
    metric: MetricsOption = None,
    fail_if: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--fail-if",
            metavar="worse:METRIC",
            help="Exit with code 1 if B is worse on this metric; may be repeated. not-better:METRIC also "
            "fails if nobody can tell. Both fail if no case has a score.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two variants, case by case: is B better, worse, or can nobody tell yet?

    Differences are B minus A. The p values are adjusted for the number of
    metrics.

    Exit codes: 0 compared, 1 a condition of --fail-if is met, 2 bad arguments
    or database, or nothing to compare.
    """
    from kantan_agents.cli.eval.conditions import read_conditions

    conditions = read_conditions(fail_if or ())

    from kantan_agents.cli.eval.compare_variants import compare_variants

    compare_variants(db, (a, b), evaluation, metric, conditions, as_json=as_json)


def report(
    a: AArgument,
    b: BArgument,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE.html", help="The file to write.", show_default=False),
    ],
    db: DatabaseOption = DATABASE,
    evaluation: EvaluationOption = None,
    metric: MetricsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the comparison of two variants as one HTML page, with charts and the cases behind them.

    The page needs no network. It has inputs and outputs in clear text.

    Exit codes: 0 written, 2 bad arguments, file or database, or nothing to
    compare.
    """
    from kantan_agents.cli.eval.report_comparison import report_comparison

    report_comparison(db, (a, b), evaluation, metric, output, force=force, as_json=as_json)
