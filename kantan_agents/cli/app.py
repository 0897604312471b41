"""The program ``kantan-agents``: its options, its exit codes, and errors as one line."""

from __future__ import annotations

import gc
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final

import typer

from kantan_agents.cli.deferred_init import defer_init
from kantan_agents.cli.terminal.completion import enable_completion
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_INTERRUPTED, describe, exit_code
from kantan_agents.cli.terminal.lazy_group import CommandHome, LazyGroup
from kantan_agents.cli.terminal.new_app import new_app

PROGRAM = "kantan-agents"

# Python's default is 700. Garbage collection then takes an eighth of `import agents`.
_OBJECTS_BETWEEN_COLLECTIONS = 10_000

_COMMANDS: Final = {
    "demo": CommandHome(
        "kantan_agents.cli.demo.command:demo",
        "Show the main workflow: run an agent, judge its answer, find both in the traces.",
    ),
    "run": CommandHome(
        "kantan_agents.cli.run.command:run",
        "Answer one question, for use in scripts.",
    ),
    "completion": CommandHome(
        "kantan_agents.cli.terminal.completion:completion",
        "Print a script that completes commands and options in a shell.",
    ),
    "chat": CommandHome(
        "kantan_agents.cli.chat.command:chat",
        "Talk to an agent in the terminal.",
    ),
    "improve": CommandHome(
        "kantan_agents.cli.improve.commands:improve",
        "Search for a better version of a prompt, from recorded runs and their scores.",
    ),
    "worker": CommandHome(
        "kantan_agents.cli.worker.commands:worker",
        "Run durable agents from queues until a signal stops it.",
    ),
    "approvals": CommandHome(
        "kantan_agents.cli.approvals.commands:app",
        "List the tool calls of durable runs that wait for an approval, and answer them.",
    ),
    "agents": CommandHome(
        "kantan_agents.cli.agents.commands:app",
        "Work with agents in Markdown files: list, show, search, validate, create, fix.",
    ),
    "eval": CommandHome(
        "kantan_agents.cli.eval.commands:app",
        "Evaluate agents on datasets, compare prompts and models, and check judges with human labels.",
    ),
    "models": CommandHome(
        "kantan_agents.cli.models.commands:app",
        "Check a model, or list the providers that can be used on this machine.",
    ),
    "mcp": CommandHome(
        "kantan_agents.cli.mcp.commands:app",
        "List, check and trust the MCP servers of .mcp.json and kantan-agents.toml.",
    ),
    "replay": CommandHome(
        "kantan_agents.cli.replay.commands:app",
        "Run recorded runs again: recordings in files as a test, or a cohort with something changed.",
    ),
    "rollout": CommandHome(
        "kantan_agents.cli.rollout.commands:app",
        "Look at rollouts of new prompts and models, give them more users, or stop them.",
    ),
    "runs": CommandHome(
        "kantan_agents.cli.runs.commands:app",
        "List durable runs, show them, cancel them, or resume them.",
    ),
    "skills": CommandHome(
        "kantan_agents.cli.skills.commands:app",
        "Work with skills, and with slash commands in Markdown files: list, validate.",
    ),
    "tools": CommandHome(
        "kantan_agents.cli.tools.commands:app",
        "Explain, check and try tool rules, list the tools of installed providers.",
    ),
    "traces": CommandHome(
        "kantan_agents.cli.traces.commands:app",
        "Look at the runs in a trace database: list, show, open, search, diff, export, prune, and more.",
    ),
}


class _Program(LazyGroup):
    homes = _COMMANDS


app = new_app(
    cls=_Program,
    name=PROGRAM,
    add_completion=False,  # `completion` prints the script instead of writing to the user's files
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        python = sys.version.split()[0]
        sdk = _version_of("openai-agents")
        typer.echo(f"{PROGRAM} {_version_of(PROGRAM)} (openai-agents {sdk}, Python {python})")
        raise typer.Exit


def _version_of(distribution: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"  # run from a source tree that is not installed


@app.callback(invoke_without_command=True)
def main_options(
    context: typer.Context,
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Run agents on the OpenAI Agents SDK; record their runs and find them again."""
    del show_version  # handled by its callback
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def make_commands() -> Any:  # a class of click, or of Typer's copy
    """Return the program. It is cached because tests run many commands in one process."""
    return typer.main.get_command(app)


def invoke(arguments: Sequence[str]) -> int:
    """Run the program and return its exit code."""
    enable_completion(PROGRAM)
    defer_init(
        "kantan_llm"
    )  # reading traces needs kantan-llm's search, but not openai, which its clients import
    try:
        code = make_commands().main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`); the flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except SystemExit as leaving:
        # Typer and rich handle a broken pipe themselves and raise SystemExit.
        return leaving.code if isinstance(leaving.code, int) else EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - every error becomes one line for the user
        typer.echo(f"error: {describe(error)}", err=True)
        return exit_code(error)
    return code if isinstance(code, int) else 0


def _open_missing_streams() -> None:
    """Open stdout and stderr on the null device if they are closed, as by ``>&-``.

    Otherwise a file opened later could get their descriptors and receive the output.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open until exit


def main() -> None:
    """Entry point of the console script."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # An answer may contain characters that the terminal's encoding lacks.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # Reserve stderr for the error line: by default libraries log and warn there.
    logging.getLogger().addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    sys.exit(invoke(sys.argv[1:]))
