"""The commands of ``kantan-agents tools`` and their options."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.agent_names import complete_agent
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption
from kantan_agents.cli.terminal.read_quantities import read_duration
from kantan_agents.cli.traces.options import (
    NO_FILTERS,
    FilterOptions,
)
from kantan_agents.errors import InvalidOptionError

app = new_group()


@app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the tool.")],
    rules: Annotated[
        Optional[str],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Option(
            "--rules",
            metavar="FILE",
            help="Explicit rules, as for `tools check`; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    arguments: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--args",
            metavar="JSON|@FILE",
            help="Arguments of a call; without them the tool itself is checked.",
            show_default=False,
        ),
    ] = None,
    agent: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--agent",
            metavar="NAME|FILE",
            help="Explain it for this agent from `agents list`, or of a .md file, as in `run --agent`.",
            show_default=False,
            autocompletion=complete_agent,
        ),
    ] = None,
    skill: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--skill",
            metavar="NAME",
            help="Explain it for the time after the agent has chosen this skill; needs --agent.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show whether a tool may be used, and which rule of which layer decides.

    The layers are base, provider NAME, explicit (--rules) and, with --agent,
    definition: the tools that its file allows. Installed providers apply, as
    in a run.

    No MCP server is started: mcp__github__push is decided by its name alone,
    and mcp__github means all tools of the server. A line that starts with
    unknown has the conditions.

    Example: kantan-agents tools explain Bash --agent code-reviewer --args '{"command": "git push"}'

    Exit codes: 0 allowed, 1 denied, 2 bad arguments, files or providers.
    """
    from kantan_agents.cli.terminal import inputs
    from kantan_agents.cli.tools import rules_file

    explicit = rules_file.read_rules(rules) if rules is not None else None
    called = inputs.text_or_file("--args", arguments) if arguments is not None else None
    named = None
    if agent is not None:
        from kantan_agents.cli.agents.agent_to_run import read_agent

        named = read_agent(agent)

    from kantan_agents.cli.tools.explain import explain_tool

    explain_tool(name, called, explicit, agent=named, skill=skill, as_json=as_json)


@app.command()
def check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="JSON: a rule set with allow, deny and params, or a context with one under tool_rules; "
            "- reads standard input.",
        ),
    ],
) -> None:
    """List all mistakes in a file of tool rules, one per line, each with its path.

    Duplicate keys and numbers that JSON does not have are mistakes too. An
    entry of allow that is a full shell, such as Bash(find:*), is a warning.

    Exit codes: 0 no mistakes, 2 mistakes, or the file cannot be read.
    """
    from kantan_agents.cli.tools.rules_file import check_rules

    check_rules(file)


@app.command("what-if")
@grouped
def what_if(
    rules: Annotated[
        str,
        typer.Argument(
            metavar="RULES", help="The other rules, in a file as for `tools check`; - reads standard input."
        ),
    ],
    last: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--last",
            metavar="DURATION",
            help="Runs of this time until now, such as 12h or 30d.",
            show_default=False,
        ),
    ] = None,
    layer: Annotated[
        str,
        typer.Option(
            "--layer", metavar="NAME", help='The layer to replace, such as base or "provider shop".'
        ),
    ] = "explicit",
    db: DatabaseOption = DATABASE,
    filters: FilterOptions = NO_FILTERS,
    as_json: JsonOption = False,
) -> None:
    """List the recorded tool calls that other rules would have decided differently.

    No model and no tool runs. RULES replaces one layer of the recorded rules.
    A terminal shows 20 flips of each kind. A trace id with a * marks a call
    after another flip of its run, so it might not have happened.

    Example: kantan-agents tools what-if rules.json --last 30d

    Exit codes: 0 no decision flips, 1 some do, 2 bad rules, arguments or
    database, or no recorded call.
    """
    from kantan_agents.cli.tools import rules_file
    from kantan_agents.cli.traces.filters import read_filters

    if last is not None and filters.since is not None:
        raise InvalidOptionError(option="--last", reason="cannot be combined with --since")
    wanted = read_filters(filters)
    if last is not None:
        wanted["started_from"] = datetime.now(timezone.utc) - read_duration(last, "--last")
    asked = rules_file.read_rules(rules)

    from kantan_agents.cli.tools.what_if import show_what_if

    show_what_if(db, asked, wanted, layer=layer, as_json=as_json)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List installed tool providers with their tools and rules, and providers that cannot be used.

    Providers that KANTAN_AGENTS_TOOL_PROVIDERS does not permit are listed
    without being loaded.

    Exit codes: 0 all can be used, 1 some cannot.
    """
    from kantan_agents.cli.tools.list import list_providers

    list_providers(as_json=as_json)
