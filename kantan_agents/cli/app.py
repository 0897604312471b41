"""The program ``kantan-agents``: its options, its exit codes, and errors as one line."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.agents.commands import app as agents
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_INTERRUPTED, describe, exit_code
from kantan_agents.cli.tools.commands import app as tools
from kantan_agents.cli.traces.commands import app as traces
from kantan_agents.errors import InvalidOptionError

PROGRAM = "kantan-agents"
INSTRUCTIONS = "You are a helpful assistant."

app = typer.Typer(
    name=PROGRAM,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

# Typer reads these annotations at run time and knows no `X | None` on Python 3.10 in older versions.
ModelOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--model",
        metavar="NAME",
        help="Model name for kantan-llm, such as gpt-6.1-terra, gemini-2.5-pro or ollama/llama3.2.",
        show_default=False,
    ),
]
DatabaseOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--db",
        metavar="PATH",
        help="SQLite database for the traces; made if it is not there, else added to.",
        show_default=False,
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        python = sys.version.split()[0]
        sdk = _version_of("openai-agents")
        typer.echo(f"{PROGRAM} {_version_of(PROGRAM)} (openai-agents {sdk}, Python {python})")
        raise typer.Exit


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"  # run from a source tree that was never installed


@app.callback(invoke_without_command=True)
def main_options(
    context: typer.Context,
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Agents on the OpenAI Agents SDK, every run recorded and found again."""
    del show_version  # its callback has answered already
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    model: ModelOption = None,
    db: DatabaseOption = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the temporary database when there is no --db.")
    ] = False,
) -> None:
    """Show the main job: an agent runs, is judged, and is found again in its traces.

    Needs no network and no key: without --model, a scripted model on 127.0.0.1 answers over HTTP.
    """
    from kantan_agents.cli.demo.demo import show_demo

    show_demo(model=model, database=db, keep=keep)


@app.command()
def run(
    question: Annotated[
        str,
        typer.Argument(metavar="QUESTION", help="What to ask, or a /command; - reads a question from stdin."),
    ],
    agent: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Ask this agent, one of those that agents list shows; it may delegate to the others.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    instructions: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--instructions",
            metavar="TEXT|@FILE",
            help="What the agent is told; may hold markers such as {{ $ctx.customer.name }}. "
            f'Without it: "{INSTRUCTIONS}"',
            show_default=False,
        ),
    ] = None,
    context_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--context",
            metavar="FILE.json",
            help="Context of the run, a JSON object; what --json printed may be given again.",
            show_default=False,
        ),
    ] = None,
    db: DatabaseOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the completed context as one JSON object.")
    ] = False,
    no_commands: Annotated[
        bool,
        typer.Option("--no-commands", help="The question is a question, even if it begins with /."),
    ] = False,
) -> None:
    """Ask one question and print the answer, for use in scripts.

    The answer goes to standard output, an error as one line to standard error.
    Exit codes: 0 answered, 1 the run failed, 2 bad arguments, 130 interrupted.

    A question such as /read notes.txt runs the tool read, no model; /help lists what there is, //
    begins a question with /. Not so with -: what is piped in is always a question, and with --no-commands.

    Without --model the default model of the SDK answers.
    With --agent, --model stands for short names in its file, and for none.
    Without --db nothing is recorded, neither here nor on any server.
    """
    from kantan_agents.cli.agents.named import read_agent
    from kantan_agents.cli.run import database
    from kantan_agents.cli.terminal import inputs

    if agent is not None and instructions is not None:
        raise InvalidOptionError(option="--agent", reason="cannot stand beside --instructions")
    asked = inputs.read_question(question)
    told = inputs.read_instructions(INSTRUCTIONS if instructions is None else instructions)
    context = inputs.read_context(context_file)
    database.check_database(db)
    named = None if agent is None else read_agent(agent)

    from kantan_agents.cli.run.run import answer

    # What comes through a pipe may be anybody's words.
    commands = question != inputs.STDIN and not no_commands
    answer(
        asked, named or told, model=model, context=context, database=db, as_json=as_json, commands=commands
    )


app.add_typer(agents, name="agents")
app.add_typer(tools, name="tools")
app.add_typer(traces, name="traces")


def invoke(arguments: Sequence[str]) -> int:
    """Run the program with ``arguments`` and return its exit code; errors are told on stderr."""
    command = typer.main.get_command(app)
    try:
        code = command.main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`); the flush at exit must not complain about it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except SystemExit as leaving:
        # Typer and rich have seen the broken pipe first and silenced the stream themselves.
        return leaving.code if isinstance(leaving.code, int) else EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the user sees one line
        typer.echo(f"error: {describe(error)}", err=True)
        return exit_code(error)
    return code if isinstance(code, int) else 0


def _open_missing_streams() -> None:
    """Give stdout and stderr to a program that was started without, as by ``>&-``: what it says is lost.

    Also, no file that is opened later may get their numbers, and with that what is printed.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end


def main() -> None:
    """Entry point of the console script."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # A model may say what the terminal's encoding lacks; that must not cost the answer.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # stderr is for our own line alone: libraries log and warn there unless told otherwise.
    logging.getLogger().addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    sys.exit(invoke(sys.argv[1:]))


if __name__ == "__main__":
    main()
