"""The commands of ``kantan-agents eval`` and their options."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.eval.diff_datasets import diff
from kantan_agents.cli.eval.run import LooksOption, run
from kantan_agents.cli.replay.cohort import LastOption, SampleOption, SeedOption
from kantan_agents.cli.replay.cohort import LimitOption as CohortLimitOption
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import (
    AS_TABLE,
    ForceOption,
    FormOptions,
    JsonOption,
    ListLimitOption,
    most_of,
)
from kantan_agents.cli.traces.options import AgentOption, PromptOption, VersionOption

app = new_group()


# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.
NamesArgument = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Argument(
        metavar="NAME",
        help="A, the variant to compare with, and B, or several that the verdicts are about. Each is a name, "
        "or EVALUATION:VARIANT. After A alone, B are all others of its evaluation; without names, A is its "
        "first.",
        show_default=False,
    ),
]
EvaluationOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--evaluation",
        metavar="NAME",
        help="The evaluation that the variants belong to; by default the latest.",
        show_default=False,
    ),
]
MetricsOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="Compare by this metric only; may be repeated. Fewer metrics find smaller differences.",
        show_default=False,
    ),
]
MissingOption = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="worst|ignore",
        help="Whether runs that failed or lack a score count as the worst score, or their cases are omitted.",
        show_default=False,
    ),
]
EvaluationArgument = Annotated[
    str,
    typer.Argument(metavar="EVALUATION", help="The evaluation that `list` shows, or LAST for the latest."),
]
MetricOption = Annotated[
    str,
    typer.Option("--metric", metavar="NAME", help="The judged metric, such as helpful.", show_default=False),
]
VariantOption = Annotated[
    Optional[list[str]],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
    typer.Option(
        "--variant",
        metavar="NAME",
        help="Only results of this variant; may be repeated. By default all.",
        show_default=False,
    ),
]


@app.command()
def dataset(
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUT.jsonl",
            help="The file to write, for `eval run`; or OUT.csv or OUT.tsv, for str values only.",
        ),
    ],
    db: DatabaseOption = DATABASE,
    agent: AgentOption = None,
    prompt: PromptOption = None,
    version: VersionOption = None,
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Runs that have failed, or whose answer a judge scored below 0.5."),
    ] = False,
    last: LastOption = None,
    limit: CohortLimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a dataset from recorded runs, one case for each run that passes all filters.

    A case has the input of the run, the context values that its prompt read,
    and the recorded answer as the expected output. Edit the file where the
    answer was wrong. Runs of experiments and of judges are omitted.

    Example: kantan-agents eval dataset cases.jsonl --prompt support --last 7d --sample 50

    Exit codes: 0 written, 2 no such run, or a bad file or database.
    """
    from kantan_agents.cli.terminal.read_quantities import read_duration

    filters = {
        "agent": agent,
        "prompt": prompt,
        "version": version,
        "failed": True if failed else None,
        "last": None if last is None else read_duration(last, "--last"),
        "limit": limit,
        "sample": sample,
        "seed": seed,
    }

    from kantan_agents.cli.eval.write_dataset import write_dataset

    write_dataset(db, output, filters, force=force, as_json=as_json)


app.command("diff")(diff)
app.command("run")(run)


@app.command("list")
def list_(db: DatabaseOption = DATABASE, limit: ListLimitOption = None, as_json: JsonOption = False) -> None:
    """List the latest evaluations.

    Exit codes: 0 listed, even without evaluations, 2 bad arguments or database.
    """
    from kantan_agents.cli.eval.list_evaluations import list_evaluations

    list_evaluations(db, limit=most_of(limit, as_json=as_json), as_json=as_json)


@app.command()
@grouped
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The evaluation that `list` shows, or LAST for the latest.")
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
    limit: ListLimitOption = None,
    form: FormOptions = AS_TABLE,
) -> None:
    """Show an evaluation: the scores of each variant, and each run with its trace.

    `kantan-agents traces show ID` shows the trace of a run.

    Exit codes: 0 shown, 2 no such evaluation, or a bad database.
    """
    from kantan_agents.cli.eval.show_runs import WantedRuns, show_runs

    most = most_of(limit, as_json=form.as_json or form.as_csv)
    show_runs(db, name, WantedRuns(failed, metric, most), form)


@app.command()
@grouped
def compare(
    names: NamesArgument = None,
    db: DatabaseOption = DATABASE,
    evaluation: EvaluationOption = None,
    metric: MetricsOption = None,
    fail_if: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--fail-if",
            metavar="worse:METRIC",
            help="Exit with code 1 if B is worse on this metric; may be repeated. not-better:METRIC also "
            "fails if it is unclear. Both fail if no case has a score, and for latency, tokens and cost if "
            "more runs failed.",
            show_default=False,
        ),
    ] = None,
    missing: MissingOption = "worst",
    looks: LooksOption = None,
    form: FormOptions = AS_TABLE,
) -> None:
    """Compare variants, case by case: is B better than A, worse, or is it unclear?

    Differences are B minus A. The p values are adjusted for the number of
    metrics, and for the number of variants if there are more than two. Cases
    that only one of both was run on are omitted.

    Example: kantan-agents eval compare v1 v2 --fail-if worse:polite

    Exit codes: 0 compared, 1 a condition of --fail-if is met, 2 bad arguments
    or database, nothing to compare, or a condition that cannot be met with so
    few cases.
    """
    from kantan_agents.cli.eval.conditions import read_conditions

    conditions = read_conditions(fail_if or ())

    from kantan_agents.cli.eval.compare_several import compare_named
    from kantan_agents.cli.eval.compare_variants import ComparisonOptions

    options = ComparisonOptions(metric, missing, looks)
    compare_named(db, names or (), evaluation, options, conditions, form)


@app.command()
def report(
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE.html", help="The file to write.", show_default=False),
    ],
    names: NamesArgument = None,
    db: DatabaseOption = DATABASE,
    evaluation: EvaluationOption = None,
    metric: MetricsOption = None,
    missing: MissingOption = "worst",
    looks: LooksOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the comparison of variants as one HTML page, with charts and the cases behind them.

    The page needs no network and has no script. It has inputs and outputs in
    plain text, so a new file is for its owner only.

    Exit codes: 0 written, 2 bad arguments, file or database, or nothing to
    compare.
    """
    from kantan_agents.cli.eval.compare_variants import ComparisonOptions
    from kantan_agents.cli.eval.report_comparison import report_comparison

    options = ComparisonOptions(metric, missing, looks)
    report_comparison(db, names or (), evaluation, options, output, force=force, as_json=as_json)


@app.command()
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
        int,
        typer.Option(
            "--seed", metavar="N", min=0, help="The same seed chooses the same sample, for every labeler."
        ),
    ] = 0,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="SCALE",
            help="yesno, 0-1, or grades such as 1-5, which are stored from 0 to 1.",
        ),
    ] = "0-1",
    variant: VariantOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON; the questions go to standard error.")
    ] = False,
) -> None:
    """Judge results of an evaluation yourself, one after the other.

    Each result is shown without the score of the judge, which follows after
    your answer, and without its variant, which follows when all variants of
    the case are answered. Each answer is stored immediately; the same command
    resumes where you stopped.

    Answers: y, n or a number; c adds a comment, s skips, u takes the last
    answer back, q quits.

    Example: kantan-agents eval label LAST --metric helpful --by Aiko --sample 40 --scale yesno

    Exit codes: 0 done or quit, 2 bad arguments or database, 130 interrupted.
    """
    from kantan_agents.cli.eval.label_results import LabelArguments, label_results

    asked = LabelArguments(db, evaluation, metric, by, sample, seed, scale, tuple(variant or ()) or None)
    label_results(asked, as_json=as_json)


@app.command()
def judge(
    evaluation: EvaluationArgument,
    metric: MetricOption,
    db: DatabaseOption = DATABASE,
    people: Annotated[
        Optional[str],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Option(
            "--people",
            metavar="NAME",
            help="The metric of the labels, if its name differs.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--by",
            metavar="NAME",
            help="Only this person's labels; may be repeated. By default all.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="VALUE", min=0, help="From which value a result passes.")
    ] = 0.5,
    as_json: JsonOption = False,
) -> None:
    """Measure a judge with human labels, and correct its scores.

    Shows how often the judge agrees with the labels, its bias, how well the
    labelers agree, and the corrected score of all cases. With two variants
    that is their difference, with any other number the score of each.

    Exit codes: 0 printed, 2 bad arguments or database.
    """
    from kantan_agents.cli.eval.measure_judge import measure_judge

    names = tuple(by or ()) or None
    measure_judge(db, evaluation, metric, people=people, by=names, threshold=threshold, as_json=as_json)
