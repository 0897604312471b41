"""The options of ``kantan-agents eval dataset``."""

from __future__ import annotations

from typing import Annotated

import typer

from kantan_agents.cli.eval.options import ForceOption
from kantan_agents.cli.replay.cohort import LastOption, LimitOption, SampleOption, SeedOption
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.traces.options import AgentOption, JsonOption, PromptOption, VersionOption


def dataset(
    output: Annotated[
        str, typer.Argument(metavar="OUT.jsonl", help="The file to write, for `eval run`; or OUT.csv.")
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
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a dataset of recorded runs, one case for each run that passes all filters.

    A case has the input of the run, the context values that its prompt read,
    and the recorded answer as the expected output. Edit the file where the
    answer was wrong.

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
