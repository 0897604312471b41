"""The commands of ``kantan-agents mcp`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption

app = new_group()

CHECK_SECONDS = 30.0

# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.
ConfigOption = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Option(
        "--config",
        metavar="FILE",
        help="Read this file instead of the usual ones. May be repeated.",
        show_default=False,
    ),
]


@app.command("list")
def list_(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the configured servers, where they are configured, and whether the file is trusted.

    No server is started.

    ready: runs can use it
    not trusted: the file is not trusted, or has changed since
    variables missing: a variable is not set, or not allowed
    disabled: by the file
    has mistakes: it cannot be used; a line below has the reason

    Exit codes: 0 listed, even without servers, 2 a file has mistakes.
    """
    from kantan_agents.cli.mcp.list import list_servers

    list_servers(config, as_json=as_json)


@app.command()
def check(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="[NAME]", help="The server; without it, all of them.", show_default=False),
    ] = None,
    config: ConfigOption = None,
    rules: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--rules",
            metavar="FILE",
            help="Tool rules, as for `tools check`, that decide about the tools; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", help="How long each server may take.", min=0.1, max=3600
        ),
    ] = CHECK_SECONDS,
    as_json: JsonOption = False,
) -> None:
    """Start the servers, at the same time, and list their tools; show which the rules allow.

    It also counts prompts and resources. For a server that cannot be used, it
    shows the error and the last lines of its output, with secrets masked.

    A server of a file that is not trusted is not started. In a terminal you
    can agree first.

    Exit codes: 0 all servers answer, 1 some do not, 2 bad arguments, rules or files.
    """
    from kantan_agents.cli.tools import rules_file

    explicit = rules_file.read_rules(rules) if rules is not None else None

    from kantan_agents.cli.mcp.check import check_servers

    check_servers(name, config, explicit, seconds=timeout, as_json=as_json)


@app.command()
def trust(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A .mcp.json, kantan-agents.toml or subagent file (.md).", readable=False
        ),
    ],
    forget: Annotated[bool, typer.Option("--forget", help="Do not trust it any longer.")] = False,
) -> None:
    """Trust a file: the servers in it may be started, until the file changes.

    It shows what the file starts, and the values of its variables.

    Exit codes: 0 trusted, or forgotten, 2 the file cannot be read or has mistakes.
    """
    from kantan_agents.cli.mcp.trust import forget_file, trust_file

    (forget_file if forget else trust_file)(file)
