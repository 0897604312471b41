"""The program ``kantan-agents``: its options, its exit codes, and errors as one line."""

from __future__ import annotations

import gc
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kantan_agents.cli.agents.commands import app as agents
from kantan_agents.cli.approvals.commands import app as approvals
from kantan_agents.cli.chat.command import chat
from kantan_agents.cli.eval.commands import app as evaluations
from kantan_agents.cli.improve.commands import improve
from kantan_agents.cli.mcp.commands import app as mcp
from kantan_agents.cli.replay.commands import app as replay
from kantan_agents.cli.rollout.commands import app as rollout
from kantan_agents.cli.run.command import run
from kantan_agents.cli.runs.commands import app as runs
from kantan_agents.cli.skills.commands import app as skills
from kantan_agents.cli.terminal.agent_options import ModelOption
from kantan_agents.cli.terminal.completion import Shell, enable_completion, print_script
from kantan_agents.cli.terminal.database import place_of
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_INTERRUPTED, describe, exit_code
from kantan_agents.cli.terminal.new_app import new_app
from kantan_agents.cli.tools.commands import app as tools
from kantan_agents.cli.traces.commands import app as traces
from kantan_agents.cli.worker.commands import worker
from kantan_agents.support.lazy_package import defer_init

PROGRAM = "kantan-agents"

# Python's own is 700. Searching for garbage in what imports have made takes an eighth of `import agents`.
_OBJECTS_BETWEEN_COLLECTIONS = 10_000

app = new_app(
    name=PROGRAM,
    add_completion=False,  # `completion` prints the script instead of writing to the user's files
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

# Typer reads these annotations at run time; older versions do not support `X | None` on Python 3.10.
DemoDatabaseOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--db",
        metavar="PATH",
        parser=place_of,
        help="SQLite database for the traces; created if it does not exist. Without it, a temporary one.",
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


@app.command()
def demo(
    model: ModelOption = None,
    db: DemoDatabaseOption = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the temporary database when there is no --db.")
    ] = False,
) -> None:
    """Show the main workflow: run an agent, judge its answer, find both in the traces.

    Needs no network and no key: without --model, a scripted model on 127.0.0.1 answers over HTTP.
    """
    from kantan_agents.cli.demo.demo import show_demo

    show_demo(model=model, database=db, keep=keep)


app.command("run")(run)


@app.command()
def completion(
    invocation: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.")],
) -> None:
    """Print a script that completes commands and options in a shell.

    bash: add  eval "$(kantan-agents completion bash)"  to ~/.bashrc
    zsh:  add  eval "$(kantan-agents completion zsh)"  to ~/.zshrc, after compinit
    fish: kantan-agents completion fish > ~/.config/fish/completions/kantan-agents.fish

    Exit codes: 0 printed, 2 unknown shell.
    """
    print_script(invocation.find_root().command, PROGRAM, shell)


app.command("chat")(chat)
app.command("improve")(improve)
app.command("worker")(worker)
app.add_typer(approvals, name="approvals")
app.add_typer(agents, name="agents")
app.add_typer(evaluations, name="eval")
app.add_typer(mcp, name="mcp")
app.add_typer(replay, name="replay")
app.add_typer(rollout, name="rollout")
app.add_typer(runs, name="runs")
app.add_typer(skills, name="skills")
app.add_typer(tools, name="tools")
app.add_typer(traces, name="traces")


@cache
def make_commands() -> Any:  # a class of click, or of its copy in Typer
    """Return all commands; making them takes as long as running one, and tests run many in one process."""
    return typer.main.get_command(app)


def invoke(arguments: Sequence[str]) -> int:
    """Run the program with ``arguments`` and return its exit code; print errors to stderr."""
    enable_completion(PROGRAM)
    defer_init(
        "kantan_llm"
    )  # reading traces needs kantan-llm's search, but not openai, which its clients need
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
    """Open stdout and stderr on the null device if the program was started without them, as by ``>&-``.

    Otherwise a file opened later could get their descriptors and receive the printed text.
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
    # Keep stderr for the error line: by default libraries log and warn there.
    logging.getLogger().addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    sys.exit(invoke(sys.argv[1:]))
