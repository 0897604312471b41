"""The options of ``eval run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.replay.cohort import (
    ConcurrencyOption,
    ContextOption,
)
from kantan_agents.cli.terminal.agent_names import complete_agent
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.max_failed import MaxFailed, MaxFailedOption
from kantan_agents.cli.terminal.output_options import AS_TABLE, FormOptions
from kantan_agents.cli.terminal.prices import NO_LIMITS, SpendingOptions

CasesArgument = Annotated[
    Path,
    typer.Argument(metavar="CASES", help="The dataset, a .jsonl or .csv file such as `eval dataset` writes."),
]
AgentOption = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="NAME|FILE.md|MODULE:NAME",
        help="The agent: one from `agents list`, its file, or an Agent object in a Python module.",
        show_default=False,
        autocompletion=complete_agent,
    ),
]
VariantOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--variant",
        metavar="NAME=FILE",
        help="Run the agent with this file as its prompt too; may be repeated.",
        show_default=False,
    ),
]
EvaluatorOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--evaluator",
        metavar="WHAT",
        help="An evaluator, see above; may be repeated. METRIC=WHAT gives its score another name.",
        show_default=False,
    ),
]
JudgeModelOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--judge-model",
        metavar="NAME",
        help="The model of the judges; by default the agent's.",
        show_default=False,
    ),
]
ModelOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--model",
        metavar="NAME",
        help="The model; for an agent from a file, if the file has none or a short name.",
        show_default=False,
    ),
]
NameOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--name",
        metavar="EVALUATION",
        help="Name of the evaluation; by default from the dataset and the variants.",
        show_default=False,
    ),
]
OpenHeldOutOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--open-held-out",
        metavar="REASON",
        help="Open a held-out test set, for the last evaluation; the reason is logged.",
        show_default=False,
    ),
]
RepeatsOption = Annotated[
    int, typer.Option("--repeats", metavar="N", min=1, help="How often each case is run.")
]
LooksOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--looks",
        metavar="one|any",
        help="Whether the verdicts hold for one look, or at any look while you add cases, which needs "
        "about twice as many cases. By default any, if cases were added to the evaluation.",
        show_default=False,
    ),
]
JUnitOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--junit",
        metavar="FILE.xml",
        help="Write the runs as JUnit XML too, each as a test; replaces the file.",
        show_default=False,
    ),
]


@grouped
def run(
    cases: CasesArgument,
    agent: AgentOption,
    variant: VariantOption = None,
    evaluator: EvaluatorOption = None,
    judge_model: JudgeModelOption = None,
    model: ModelOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    open_held_out: OpenHeldOutOption = None,
    repeats: RepeatsOption = 1,
    concurrency: ConcurrencyOption = 8,
    spending: SpendingOptions = NO_LIMITS,
    max_failed: MaxFailedOption = "0",
    db: DatabaseOption = DATABASE,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show neither a progress bar nor the results.")
    ] = False,
    junit: JUnitOption = None,
    looks: LooksOption = None,
    form: FormOptions = AS_TABLE,
) -> None:
    """Run an agent on the cases of a dataset, and score its answers.

    The agent itself is one variant, named by the version of its prompt, or
    else "baseline". Each --variant is another one. All are compared with the
    first, as by `eval compare`. If you mean to add cases until it is clear, give
    --looks any from the first run on. Tools really run.

    Each finished run is stored in the database. After Ctrl-C, the same command
    resumes where it stopped. It runs only missing, failed and changed cases.

    An evaluator gives 1 if this is true, else 0, or the stated value:

    exact: the output is exactly the expected one
    normalized: the same, apart from case, spaces and punctuation
    contains, contains:TEXT: it contains the expected output, or TEXT
    matches:REGEX: the regular expression matches somewhere
    json_fields, json_fields:PATH,PATH: the fraction of equal fields
    valid:SCHEMA.json: it fits the JSON Schema in the file
    used_tools:TOOL,TOOL and not_used:TOOL: the run used these tools, or none
    latency:SECONDS, tokens:N, cost:AMOUNT: at most that; or the value itself
    rouge_l, chrf, similar:MODEL: similarity by words, characters or meaning
    correctness, answer_relevance, harmlessness: a ready-made judge agrees
    tool_choice, task_completion: a ready-made judge agrees
    groundedness, context_precision, context_recall: 0 to 1, for tool results
    groundedness:TOOL,TOOL: 0 to 1, for the results of these tools
    judged: 0 to 1, by a judge with the agent's own prompt; metric judge
    MODULE:NAME: an evaluator or a function in a Python module

    Example: kantan-agents eval run cases.jsonl --agent support --evaluator contains

    Exit codes: 0 all runs done, 1 more failed than --max-failed, or the budget
    is used up, 2 bad arguments, files or database, or the model cannot be
    reached, 130 interrupted.
    """
    from kantan_agents.cli.terminal.inputs import read_context

    options = {
        "context": read_context(context),
        "name": name,
        "repeats": repeats,
        "concurrency": concurrency,
        **spending.read(),
    }

    from kantan_agents.cli.eval.run_evaluation import EvaluationArguments, run_evaluation

    asked = EvaluationArguments(
        path=db,
        cases=cases,
        opened_for=open_held_out,
        agent=agent,
        model=model,
        variants=tuple(variant or ()),
        evaluators=tuple(evaluator or ()),
        judge_model=judge_model,
        options=options,
        max_failed=MaxFailed.read(max_failed),
        junit=junit,
        looks=looks,
    )
    run_evaluation(asked, form, quiet=quiet)
