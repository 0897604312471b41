"""What the model reads about a command: the first line is the library's, and the command's output follows."""

from __future__ import annotations

import signal

from kantan_agents.toolkit.shell.command import Ending
from kantan_agents.toolkit.shell.limits import ShellLimits

_MIB = 1024 * 1024


def how_it_ended(ending: Ending, limits: ShellLimits, seconds: float) -> str:
    """Return a sentence about the end of a command.

    Args:
        ending: How it has ended.
        limits: What it might use.
        seconds: How long it might take.
    """
    if ending.problem is not None:
        return f"The command could not be watched to its end, and is ended: {ending.problem}."
    if ending.limit is not None:
        exceeded = {
            "time": f"it took longer than {seconds:g} s",
            "output": f"it printed more than {limits.printed_bytes / _MIB:.4g} MiB",
            "memory": f"it used more than {limits.memory_bytes / _MIB:.4g} MiB of memory",
            "cpu": f"it used more than {limits.cpu_seconds} s of CPU time",
            "processes": f"it had more than {limits.processes} processes",
        }[ending.limit]
        return f"The command was ended: {exceeded}."
    if ending.signal is not None:
        return f"The command was ended by signal {ending.signal}{_name_of(ending.signal)}."
    return f"Exit code {ending.code}."


def result_text(status: list[str], output: str) -> str:
    """Return the result of a tool call.

    Args:
        status: Sentences about the command.
        output: What it has printed.
    """
    # The status comes first: nothing that a command prints can be taken for it.
    return f"{' '.join(filter(None, status))}\n{output or 'No output.'}"


def left_behind(ending: Ending) -> str:
    """Return a sentence about processes that a command has left behind, or an empty text."""
    if ending.left == 0:
        return ""
    were = "process that it left behind was" if ending.left == 1 else "processes that it left behind were"
    return f"{ending.left} {were} ended."


def _name_of(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
