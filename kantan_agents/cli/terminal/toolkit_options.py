"""Options of the commands that run an agent: the tools of the toolkit, and which calls are approved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Optional

import attrs
import typer

from kantan_agents.errors import InvalidOptionError

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


OPTIONS_OF_TOOLS: Final = {
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "TodoWrite"), "--tools DIR"),
    **dict.fromkeys(("Write", "Edit", "MultiEdit"), "--tools DIR --write"),
    **dict.fromkeys(("Bash", "BashOutput", "KillShell"), "--tools DIR --shell"),
    "WebFetch": "--tools DIR --network",
}
"""The tools of the toolkit that a command can give an agent, and the options for each."""

TOOLS_OF_CHAT: Final = {"AskUserQuestion": "kantan-agents chat, at a terminal,"}
"""The tools that an agent has only in a chat, and what gives each."""


@attrs.frozen
class ToolkitOptions:
    """Which tools of the toolkit an agent gets.

    Attributes:
        root: The folder; None for no tools.
        write: Whether files may be changed.
        shell: Whether commands may be run.
        network: Whether pages may be fetched.
    """

    root: Path | None = None
    write: bool = False
    shell: bool = False
    network: bool = False

    def tools(self) -> list[Any]:
        """Return the tools. Those that change something wait for an approval.

        Raises:
            InvalidOptionError: E75, an option needs a folder that is not given, or it is not a folder.
            ToolkitUnavailableError: E165, the system cannot confine tools to a folder.
        """
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

        given = toolkit(self.root, write=self.write, shell=self.shell, network=self.network, read_first=True)
        return [*given, todo_write()]


NO_TOOLKIT: Final = ToolkitOptions()
"""No tools of the toolkit."""
