"""Shell completion: prints the script for a shell, and answers the calls that this script makes."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from typer import completion


class Shell(str, Enum):
    """A shell that can be completed."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def enable_completion(program: str) -> None:
    """Prepare Typer for a call of the completion script, if this process is one."""
    if _variable(program) in os.environ:
        _register_shells()


def print_script(command: Any, program: str, shell: Shell) -> None:
    """Print the script that completes ``program`` in ``shell``."""
    _register_shells()
    completion.shell_complete(command, {}, program, _variable(program), f"source_{shell.value}")


def _register_shells() -> None:
    # Typer does this for the options --install-completion and --show-completion, which this program lacks.
    completion.get_completion_inspect_parameters()


def _variable(program: str) -> str:
    return f"_{program}_COMPLETE".replace("-", "_").upper()
