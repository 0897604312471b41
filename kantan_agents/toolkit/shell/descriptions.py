"""What the model reads about the shell tools."""

from __future__ import annotations

from kantan_agents.toolkit.shell.limits import ShellLimits
from kantan_agents.toolkit.shell.sandbox import Sandbox

SANDBOXED_OR_NOT = "The result says whether there is a sandbox."


def bash_description(limits: ShellLimits, place: str) -> str:
    """Return the description of ``Bash``.

    Args:
        limits: What a command may use.
        place: A sentence about the sandbox.
    """
    return (
        "Run a command in a shell and get what it prints, standard error included. Each command is a shell "
        "of its own: it begins in the project's directory, and variables and directories of earlier commands "
        "are gone. It has no input and no terminal. "
        f"It may take {limits.seconds:g} s, or {limits.most_seconds:g} s if you ask for it. Of long output "
        f"you get the beginning and the end, {limits.output_bytes:,} bytes in all. Processes that a command "
        "leaves behind are ended with it. For something that goes on, such as a server, use "
        "run_in_background, then BashOutput and KillShell; it ends with this task. "
        f"{place}"
    )


def bash_properties(limits: ShellLimits) -> dict[str, object]:
    """Return the JSON Schemas of the parameters of ``Bash``."""
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


def about(sandbox: Sandbox | str) -> str:
    """Return a sentence about the sandbox for the model, or about its absence."""
    if isinstance(sandbox, str):
        return "There is no sandbox: commands reach all that the user of this process may."
    network = "with network" if sandbox.network else "no network"
    project = "the project may be changed" if sandbox.writes else "the project is read-only"
    return f"Sandbox: bubblewrap, {network}, {project}, the rest of the system is read-only or hidden."


def briefly(sandbox: Sandbox | str) -> str:
    """Return the same for a result."""
    if isinstance(sandbox, str):
        return "No sandbox."
    return f"Sandbox: bubblewrap, {'with' if sandbox.network else 'no'} network."
