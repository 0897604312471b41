"""Shared options of ``kantan-agents traces``."""

from __future__ import annotations

from typing import Annotated, Final, Optional

import attrs
import typer

from kantan_agents.cli.terminal.agent_names import complete_agent

# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print JSON Lines, one object a run.")]
AgentOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Runs of this agent.",
        show_default=False,
        autocompletion=complete_agent,
    ),
]
PromptOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--prompt", metavar="NAME", help="Runs of this prompt.", show_default=False),
]
VersionOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--version", metavar="VERSION", help="Runs of this version of a prompt.", show_default=False
    ),
]
ToolOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--tool", metavar="NAME", help="Runs that called this tool, or tried to.", show_default=False
    ),
]
MetaOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--meta",
        metavar="KEY=VALUE",
        help="Runs with this metadata; may be repeated. A JSON number, true, false or null is read as such; "
        "use double quotes for text.",
        show_default=False,
    ),
]
ErrorsOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--errors/--no-errors",
        help="Runs that an error stopped, or that ended without one.",
        show_default=False,
    ),
]
FailedSpansOption = Annotated[
    bool,
    typer.Option("--failed-spans", help="Runs in which anything failed, even if the run recovered."),
]
DeniedOption = Annotated[bool, typer.Option("--denied", help="Runs in which the tool rules denied a call.")]
CutOption = Annotated[bool, typer.Option("--cut", help="Runs in which an answer of a model was cut off.")]
RubricOption = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--rubric-below", metavar="SCORE", help="Runs with a lower score.", show_default=False),
]
SinceOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Runs since then: a duration ago, such as 90s, 2h or 30d, or a time, such as 2026-11-20 or "
        "2026-11-20T09:30, local by default.",
        show_default=False,
    ),
]
UntilOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--until", metavar="WHEN", help="Runs until then.", show_default=False),
]


@attrs.frozen
class FilterOptions:
    """Filters; a run must pass all."""

    agent: AgentOption = None
    prompt: PromptOption = None
    version: VersionOption = None
    tool: ToolOption = None
    meta: MetaOption = None
    errors: ErrorsOption = None
    failed_spans: FailedSpansOption = False
    denied: DeniedOption = False
    cut: CutOption = False
    rubric_below: RubricOption = None
    since: SinceOption = None
    until: UntilOption = None


NO_FILTERS: Final = FilterOptions()
"""All runs."""
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most the latest N.")]
OlderThanOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--older-than",
        metavar="AGE",
        help="Delete runs older than this, such as 12h or 30d.",
        show_default=False,
    ),
]
KeepOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--keep", metavar="N", min=0, help="Delete all but the latest N runs.", show_default=False),
]
MaxSizeOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--max-size",
        metavar="SIZE",
        help="Delete the oldest runs until the database fits this size, such as 500MB or 2GiB.",
        show_default=False,
    ),
]
