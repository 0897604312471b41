"""Options of the commands that run an agent: the tools of the toolkit, and which calls are approved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Optional

import attrs
import typer

from kantan_agents.errors import InvalidOptionError

if TYPE_CHECKING:
    from kantan_agents.agent import Agent

_SANDBOXES: Final = ("auto", "required", "off")
_BACKGROUND_SECONDS: Final = 8 * 3600

ToolsOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--tools",
        metavar="DIR",
        help="Tools for the files below this folder: Read, Glob, Grep and LS; and TodoWrite.",
        show_default=False,
    ),
]
WriteOption = Annotated[bool, typer.Option("--write", help="With --tools: also Write, Edit and MultiEdit.")]
ShellOption = Annotated[
    bool, typer.Option("--shell", help="With --tools: also Bash, which begins in the folder.")
]
NetworkOption = Annotated[bool, typer.Option("--network", help="With --tools: also WebFetch.")]
SandboxOption = Annotated[
    str,
    typer.Option(
        "--sandbox",
        metavar="auto|required|off",
        help="Whether Bash needs a sandbox: auto uses one if there is one, required refuses to run without.",
        show_default=False,
    ),
]
ApprovedOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--yes",
        metavar="TOOL",
        help="Approve the calls of this tool without asking, or only some, as in 'Bash(git status:*)' or "
        "'Write(docs/**)'. A protected file is approved by its path alone. May be given several times.",
        show_default=False,
    ),
]
AskOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--ask",
        metavar="TOOL",
        help="Also ask about calls of this tool, or as in 'Read(.env*)'. May be given several times.",
        show_default=False,
    ),
]
NoHooksOption = Annotated[
    bool, typer.Option("--no-hooks", help="Do not run the hooks of your hooks.json, and do not read it.")
]
TurnsOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--max-turns",
        metavar="N",
        min=1,
        help="The most model calls of an answer. Default: maxTurns of the agent's file, or 100.",
        show_default=False,
    ),
]
_TURNS: Final = 100


OPTIONS_OF_TOOLS: Final = {
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "TodoWrite"), "--tools DIR"),
    **dict.fromkeys(("Write", "Edit", "MultiEdit"), "--tools DIR --write"),
    **dict.fromkeys(("Bash", "BashOutput", "KillShell"), "--tools DIR --shell"),
    "WebFetch": "--tools DIR --network",
}
"""The tools of the toolkit that a command can give an agent, and the options for each."""

TOOLS_OF_CHAT: Final = {
    "AskUserQuestion": "kantan-agents chat, at a terminal,",
    "ExitPlanMode": "the plan mode of kantan-agents chat",
}
"""The tools that an agent has only in a chat, and what gives each."""


@attrs.frozen
class ToolkitOptions:
    """Which tools of the toolkit an agent gets.

    Attributes:
        root: The folder; None for no tools.
        write: Whether files may be changed.
        shell: Whether commands may be run.
        network: Whether pages may be fetched.
        sandbox: Whether commands need a sandbox, as for ``shell_tools``.
    """

    root: Path | None = None
    write: bool = False
    shell: bool = False
    network: bool = False
    sandbox: str = "auto"

    def tools(self) -> list[Any]:
        """Return the tools. Those that change something wait for an approval.

        Raises:
            InvalidOptionError: E75, an option needs a folder that is not given, or it is not a folder.
            ToolkitUnavailableError: E165, the system cannot confine tools to a folder.
        """
        if self.sandbox not in _SANDBOXES:
            reason = f"must be {', '.join(_SANDBOXES[:-1])} or {_SANDBOXES[-1]}, not {self.sandbox!r:.60}"
            raise InvalidOptionError(option="--sandbox", reason=reason)
        if self.root is None:
            for option in ("write", "shell", "network"):
                if getattr(self, option):
                    raise InvalidOptionError(option=f"--{option}", reason="needs --tools DIR")
            return []
        if not self.root.is_dir():
            reason = f"must be a folder that exists, not {self.root}"
            raise InvalidOptionError(option="--tools", reason=reason)
        # Imported here: most commands need none of it.
        from kantan_agents.toolkit import toolkit
        from kantan_agents.toolkit.todo_write import todo_write

        given = toolkit(self.root, write=self.write, read_first=True)
        if self.shell:
            from kantan_agents.toolkit.shell import ShellLimits, shell_tools

            limits = ShellLimits(background_seconds=_BACKGROUND_SECONDS)
            sandbox: Any = self.sandbox  # checked above
            given += shell_tools(self.root, limits=limits, sandbox=sandbox)
        if self.network:
            from kantan_agents.toolkit.web import web_tools

            given += web_tools()
        return [*given, todo_write()]


def turn_options(agent: Agent[Any], max_turns: int | None) -> dict[str, Any]:
    """Return the option ``max_turns`` of a run, unless the file of the agent decides.

    The SDK ends a run after ten turns, which work on files soon needs.

    Args:
        agent: The agent.
        max_turns: What the person has asked for.
    """
    if max_turns is None and agent.sdk_agent.turn_limit is not None:
        return {}
    return {"max_turns": max_turns or _TURNS}


NO_TOOLKIT: Final = ToolkitOptions()
"""No tools of the toolkit."""
