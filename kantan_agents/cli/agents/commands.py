"""The commands of ``kantan-agents agents`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.agent_names import complete_agent
from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption, StrictOption

app = new_group()

# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of an agent, in any case and with any separators.",
        autocompletion=complete_agent,
    ),
]
PathsArgument = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Argument(
        metavar="PATHS",
        help="Files, or directories with .md files; by default the usual directories.",
        readable=False,  # an unreadable file is reported like other mistakes in files
        show_default=False,
    ),
]


@app.command("list")
def list_(
    show_all: Annotated[
        bool, typer.Option("--all", help="Also list unreadable, repaired and shadowed files.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the agents of this project and its user.

    They are in .kode/agents and .claude/agents. A line below the list counts
    the files that have errors, were repaired, or are shadowed by another file
    with the same name.

    Exit codes: 0 listed, even without agents, 1 a file cannot be loaded.
    """
    from kantan_agents.cli.agents.list import list_agents

    list_agents(show_all=show_all, as_json=as_json)


@app.command()
def show(
    name: NameArgument,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the prompt and nothing else.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one agent: its settings, its tools, its file and its prompt.

    It also shows the repairs of the file, the limits without effect here, the
    installed providers of its tools, and the unused keys.

    Exit codes: 0 shown, 2 no such agent, or its file cannot be loaded.
    """
    from kantan_agents.cli.agents.show import show_agent

    show_agent(name, only_prompt=prompt, as_json=as_json)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="TEXT", help="Words of the name or the description.")],
    as_json: JsonOption = False,
) -> None:
    """Find the agents with all these words in name or description, the best first.

    Exit codes: 0 found, 1 nothing found.
    """
    from kantan_agents.cli.agents.list import search_agents

    search_agents(" ".join(words), as_json=as_json)


@app.command()
def validate(
    paths: PathsArgument = None,
    strict: StrictOption = False,
    tools: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--tools",
            metavar="NAMES",
            help="Tools that your program brings, which are not missing here.",
            show_default=False,
        ),
    ] = None,
    skills: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--skills",
            metavar="PATH",
            help="Directory of the skills that the files may name; default: the usual directories.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check agent files; print one line per problem: path, line, error or warning, message.

    An error is a file that cannot be loaded. A warning is a part that was
    repaired, is unknown, has no effect here, or names a missing tool or skill.

    Exit codes: 0 no errors, even without files, 1 errors, 2 a path does not exist.
    """
    from kantan_agents.cli.agents.validate import validate_agents

    validate_agents(paths or (), strict=strict, as_json=as_json, tools=tools, skills=skills)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the agent.")],
    description: Annotated[
        str, typer.Option("--description", metavar="TEXT", help="When to use the agent.", show_default=False)
    ],
    tools: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--tools",
            metavar="NAMES",
            help='Tools it may use, such as "Read, Grep, Bash(git diff:*)"; default: all, "": none. '
            "Entries that grant nothing are errors.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--model",
            metavar="NAME",
            help="Its model: a full name, or a short one such as sonnet.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--prompt",
            metavar="TEXT|@FILE",
            help="System prompt; default: a line with the name and the description.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        bool, typer.Option("--user", help="Write to the user's directory, not the project's.")
    ] = False,
    directory: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--dir", metavar="PATH", help="Write to this directory.", show_default=False),
    ] = None,
) -> None:
    """Write a new agent file and print its path; never overwrite a file.

    The file is written to .claude/agents in the root of the repository or,
    outside of one, in the current directory. Links in it are not followed.

    Example: kantan-agents agents new "Code Reviewer" --description "Reviews changes." --tools "Read, Grep"

    Exit codes: 0 written, 2 bad arguments, or the file or agent exists already.
    """
    from kantan_agents.cli.agents.new import agents_directory, new_agent

    new_agent(
        name,
        description=description,
        tools=tools,
        model=model,
        prompt=prompt,
        directory=agents_directory(directory, user=user),
    )


@app.command()
def fix(
    paths: PathsArgument = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes, write nothing.")] = False,
) -> None:
    """Rewrite files that are not valid YAML as valid YAML; show the changes.

    Only the invalid fields change. A file is skipped if its meaning would
    change, it has changed in the meantime, it has a second name (a hard link),
    or a link in the repository leads to it. Standard error has the reasons.

    Exit codes: 0 all files are valid now, 1 a file cannot be fixed, 2 a path does not exist.
    """
    from kantan_agents.cli.agents.fix import fix_agents

    fix_agents(paths or (), dry_run=dry_run)
