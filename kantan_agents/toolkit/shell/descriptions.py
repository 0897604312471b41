"""Strings for the model about commands.

The first line of a result is the library's; the command's output follows.
"""

from __future__ import annotations

import signal

from kantan_agents.toolkit.shell.command import CommandEnding, ShellCommand
from kantan_agents.toolkit.shell.limits import ShellLimits
from kantan_agents.toolkit.shell.sandbox import Sandbox

SANDBOXED_OR_NOT = "The result says whether there is a sandbox."
BASH_OUTPUT = (
    "Read what a command in the background has printed since your last call, and whether it is running."
)
BASH_OUTPUT_PROPERTIES: dict[str, object] = {
    "bash_id": {"type": "string", "description": "The id that Bash returned."},
    "filter": {
        "type": "string",
        "description": "A regular expression. Only lines that match are returned; the others are lost.",
    },
}
KILL_SHELL = "End a command in the background, with all of its processes."
KILL_SHELL_PROPERTIES: dict[str, object] = {
    "shell_id": {"type": "string", "description": "The id that Bash returned."}
}
_MIB = 1024 * 1024


def bash_description(limits: ShellLimits, place: str) -> str:
    """Return the description of ``Bash``."""
    return (
        "Run a command in a shell and get what it prints, standard error included. Each command is a shell "
        "of its own: it begins in the project's directory, and variables and directories of earlier commands "
        "are gone. It has no input and no terminal. "
        f"It may take {limits.seconds:g} s, or {limits.most_seconds:g} s if you ask for it. Of long output "
        f"you get the beginning and the end, {limits.output_bytes:,} bytes in all. Processes that a command "
        "leaves behind are ended with it. For something that goes on, such as a server, use "
        "run_in_background, then BashOutput and KillShell; the result says when it ends. "
        f"{place}"
    )


def bash_properties(limits: ShellLimits) -> dict[str, object]:
    """Return the parameters of ``Bash``."""
    return {
        "command": {"type": "string", "minLength": 1, "description": "The command."},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": limits.most_seconds * 1000,
            "description": "How long it may take, in milliseconds.",
        },
        "description": {"type": "string", "description": "What it does, in five to ten words."},
        "run_in_background": {
            "type": "boolean",
            "description": "Return at once; read the output with BashOutput.",
        },
    }


def about(sandbox: Sandbox | str) -> str:
    """Return a sentence about the sandbox or its absence."""
    if isinstance(sandbox, str):
        return "There is no sandbox: commands reach all that the user of this process may."
    network = "with network" if sandbox.network else "no network"
    project = "the project may be changed" if sandbox.writes else "the project is read-only"
    if sandbox.writes:
        project += ", but not files that decide what is executed or permitted, as .git/config does"
    return f"Sandbox: bubblewrap, {network}, {project}, the rest of the system is read-only or hidden."


def briefly(sandbox: Sandbox | str) -> str:
    """Return ``about`` in short, for a result."""
    if isinstance(sandbox, str):
        return "No sandbox."
    return f"Sandbox: bubblewrap, {'with' if sandbox.network else 'no'} network."


def how_it_ended(ending: CommandEnding, limits: ShellLimits, seconds: float) -> str:
    """Return a sentence about the end of a command."""
    if ending.problem is not None and ending.limit is None:
        return f"The command could not be watched to its end, and is ended: {ending.problem}."
    if ending.limit is not None:
        exceeded = {
            "time": f"it took longer than {seconds:g} s",
            "output": f"it printed more than {limits.printed_bytes / _MIB:.4g} MiB",
            "memory": f"it used more than {limits.memory_bytes / _MIB:.4g} MiB of memory",
            "cpu": f"it used more than {limits.cpu_seconds} s of CPU time",
            "disk": f"it wrote more than {limits.disk_bytes / _MIB:.4g} MiB to disks",
            "processes": f"it had more than {limits.processes} processes",
            "kept": "it made a protected file",
            "replaced": "a protected file that it could not write was replaced meanwhile",
            "way": "a protected file is changed, which it could write afterwards",
        }[ending.limit]
        unwatched = f" It could not be watched to its end: {ending.problem}." if ending.problem else ""
        return f"The command was ended: {exceeded}.{unwatched}"
    if ending.signal is not None:
        return f"The command was ended by signal {ending.signal}{_name_of(ending.signal)}."
    return f"Exit code {ending.code}."


def result_text(status: list[str], output: str) -> str:
    """Return the result of a tool call."""
    # The status comes first, so that output cannot imitate it.
    return f"{' '.join(filter(None, status))}\n{output or 'No output.'}"


def left_behind(ending: CommandEnding) -> str:
    """Return a sentence about processes left behind, or ""."""
    if ending.left == 0:
        return ""
    were = "process that it left behind was" if ending.left == 1 else "processes that it left behind were"
    return f"{ending.left} {were} ended."


def set_aside(ending: CommandEnding) -> str:
    """Return a sentence about protected files that were created, or ""."""
    if not ending.moved:
        return ""
    listed = ", ".join(
        f"{old} is now {new}" if new else f"{old} is a link again" for old, new in ending.moved
    )
    return (
        "Commands may not make files that decide what is executed or permitted here, or replace links to "
        f"them: {listed}. Only a person can do this."
    )


def replaced_meanwhile(ending: CommandEnding) -> str:
    """Return a sentence about protected files that may have been written, or ""."""
    if not ending.replaced:
        return ""
    listed = ", ".join(ending.replaced)
    return f"Look at what was replaced, because the command could write there for a moment: {listed}."


def all_about(ending: CommandEnding, limits: ShellLimits, seconds: float) -> str:
    """Return all sentences about the end of a command."""
    how = how_it_ended(ending, limits, seconds)
    return " ".join(filter(None, (how, left_behind(ending), set_aside(ending), replaced_meanwhile(ending))))


def state_of(command: ShellCommand) -> str:
    """Return sentences about a background command."""
    if command.ending is not None:
        return all_about(command.ending, command.limits, command.seconds)
    return "The command has ended with its event loop." if command.is_over else "Running."


def _name_of(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
