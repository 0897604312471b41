"""The options of ``kantan-agents replay cohort``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.max_failed import MaxFailed, MaxFailedOption
from kantan_agents.cli.terminal.output_options import JsonOption
from kantan_agents.cli.terminal.prices import NO_LIMITS, SpendingOptions
from kantan_agents.cli.traces.options import PromptOption, VersionOption

AgentOption = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="MODULE:NAME",
        help="The agent as defined now: an Agent object in a Python module, also of the current directory.",
        show_default=False,
    ),
]
ChangeOption = Annotated[
    list[str],
    typer.Option(
        "--change",
        metavar="WHAT=VALUE",
        help="What is different; may be repeated: model=NAME, prompt=TEXT or prompt=@FILE, "
        "settings.NAME=VALUE, rules=@FILE, tool.NAME.description=TEXT, tool.NAME.parameters=@FILE.",
        show_default=False,
    ),
]
OfOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--of",
        metavar="AGENT",
        help="The agent that is changed, if not the given one: one that it hands over or delegates to. "
        "By default the agents with the --prompt, or else the given one.",
        show_default=False,
    ),
]
TraceOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--trace", metavar="ID", help="This trace; may be repeated.", show_default=False),
]
LastOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--last", metavar="AGE", help="Runs of the last 12h or 7d.", show_default=False),
]
LimitOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--limit", metavar="N", min=1, help="At most the latest N runs.", show_default=False),
]
SampleOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--sample", metavar="N", min=1, help="N of the runs, at random.", show_default=False),
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", help="The same seed chooses the same sample.")
]
LiveOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--live",
        metavar="TOOL",
        help="A tool that may really run if the recording does not answer its call; may be repeated.",
        show_default=False,
    ),
]
RepeatsOption = Annotated[
    int, typer.Option("--repeats", metavar="N", min=1, help="How often each run is repeated.")
]
ConcurrencyOption = Annotated[
    int,
    typer.Option("--concurrency", metavar="N", min=1, help="How many runs are in progress at the same time."),
]
ContextOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--context",
        metavar="FILE.json",
        help="More values for the context of each run, a JSON object.",
        show_default=False,
    ),
]
NameOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--name", metavar="EXPERIMENT", help="Name of the experiment.", show_default=False),
]


@grouped
def cohort(
    agent: AgentOption,
    change: ChangeOption,
    of: OfOption = None,
    db: DatabaseOption = DATABASE,
    trace: TraceOption = None,
    prompt: PromptOption = None,
    version: VersionOption = None,
    last: LastOption = None,
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    live: LiveOption = None,
    repeats: RepeatsOption = 1,
    concurrency: ConcurrencyOption = 4,
    spending: SpendingOptions = NO_LIMITS,
    max_failed: MaxFailedOption = "0",
    context: ContextOption = None,
    name: NameOption = None,
    no_record: Annotated[
        bool,
        typer.Option(
            "--no-record", help="Do not record the new runs as traces; the experiment is stored anyway."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run recorded runs again with something changed, and show the differences.

    The models are really called. Tools do not run: a recorded call gets its
    recorded result, and any other call stops that run as diverged.

    Each finished run is stored in the database. After Ctrl-C, the same command
    resumes where it stopped.

    Example: kantan-agents replay cohort --agent shop:support --last 7d --change model=gpt-6.1-terra

    Exit codes: 0 all runs done, 1 more failed than --max-failed, or the budget
    is used up, 2 bad arguments or database, or the model cannot be reached,
    130 interrupted.
    """
    from kantan_agents.cli.replay.read_changes import read_changes
    from kantan_agents.cli.replay.run_experiment import CohortArguments, run_experiment
    from kantan_agents.cli.terminal.inputs import read_context
    from kantan_agents.cli.terminal.read_quantities import read_duration
    from kantan_agents.errors import InvalidOptionError

    filters = {"--version": version, "--last": last, "--limit": limit, "--sample": sample}
    given = [option for option, value in filters.items() if value is not None]
    if trace and given:
        raise InvalidOptionError(
            option=given[0], reason="selects runs, and --trace names them; use one of both"
        )
    asked = CohortArguments(
        db,
        agent,
        read_changes(change),
        of,
        tuple(trace or ()),
        {
            "prompt": prompt,
            "version": version,
            "last": None if last is None else read_duration(last, "--last"),
            "limit": limit,
            "sample": sample,
            "seed": seed,
        },
        {
            "live": tuple(live or ()),
            "repeats": repeats,
            "concurrency": concurrency,
            **spending.read(),
            "context": read_context(context),
            "name": name,
        },
        MaxFailed.read(max_failed),
    )
    run_experiment(asked, records=not no_record, as_json=as_json)
