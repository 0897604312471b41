"""Shell completion."""

from __future__ import annotations

import os
from enum import Enum
from typing import Annotated

import typer
from typer.completion import get_completion_inspect_parameters, shell_complete


class Shell(str, Enum):
    """A supported shell."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def enable_completion(program: str) -> None:
    """Prepare Typer if the completion script calls."""
    if _variable(program) in os.environ:
        _register_shells()


def completion(
    invocation: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.")],
) -> None:
    """Print a script that completes commands and options in a shell.

    bash: add  eval "$(kantan-agents completion bash)"  to ~/.bashrc
    zsh:  add  eval "$(kantan-agents completion zsh)"  to ~/.zshrc, after compinit
    fish: kantan-agents completion fish > ~/.config/fish/completions/kantan-agents.fish

    powershell: add  kantan-agents completion powershell | Out-String | Invoke-Expression  to $PROFILE

    It completes agents after --agent and ids after chat --resume, too.

    Exit codes: 0 printed, 2 unknown shell.
    """
    _register_shells()
    root = invocation.find_root()
    program = str(root.info_name)
    shell_complete(root.command, {}, program, _variable(program), f"source_{shell.value}")


def _register_shells() -> None:
    # Typer does this for --install-completion and --show-completion, which this program lacks.
    get_completion_inspect_parameters()


def _variable(program: str) -> str:
    return f"_{program}_COMPLETE".replace("-", "_").upper()
