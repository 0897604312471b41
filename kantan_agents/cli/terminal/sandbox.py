"""Reports whether commands run in a sandbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

import typer

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import SandboxUnavailableError, ShellUnavailableError

_BASH: Final = "Bash"


def say_where_commands_run(tools: Iterable[Any], approved: Collection[str], choice: str) -> str:
    """Report on standard error whether ``Bash`` runs in a sandbox; return it in words.

    ``"required"`` fails (E168) without a sandbox, even if the tools do not require one.
    """
    given = [tool for tool in tools if getattr(tool, "name", None) == _BASH]
    if not given:
        return ""
    # Imported here: most agents run no commands.
    from kantan_agents.toolkit.shell.descriptions import briefly
    from kantan_agents.toolkit.shell.shell import shell_of

    shell = shell_of(given)
    if shell is None:
        return ""
    try:
        sandbox = shell.place_now()
    except ShellUnavailableError as error:  # as on Windows; a call reports it as well
        typer.echo(f"warning: {one_line(str(error))}", err=True)
        return ""
    if not isinstance(sandbox, str):
        typer.echo(f"note: {_BASH} runs its commands in a sandbox. {briefly(sandbox)}", err=True)
        return "in a sandbox"
    if choice == "required":
        raise SandboxUnavailableError(reason=sandbox)
    what = f"--yes {_BASH} approves" if _BASH in approved else f"{_BASH} runs"
    sentence = f"{what} commands without a sandbox, which reach all that you may: {sandbox}"
    typer.echo(f"warning: {one_line(sentence)}; --sandbox required refuses them", err=True)
    return "no sandbox"
