"""The options that ``run`` and ``chat`` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Optional

import attrs
import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption, is_named
from kantan_agents.errors import InvalidOptionError

if TYPE_CHECKING:
    from kantan_agents.agent import Agent

INSTRUCTIONS: Final = "You are a helpful assistant."
_SANDBOXES: Final = ("auto", "required", "off")
_BACKGROUND_SECONDS: Final = 8 * 3600
_TURNS: Final = 100

OPTIONS_OF_TOOLS: Final = {
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "TodoWrite"), "--tools DIR"),
    **dict.fromkeys(("Write", "Edit", "MultiEdit"), "--tools DIR --write"),
    **dict.fromkeys(("Bash", "BashOutput", "KillShell"), "--tools DIR --shell"),
    "WebFetch": "--tools DIR --network",
}
"""The toolkit's tools, and the options of each."""

TOOLS_OF_CHAT: Final = {
    "AskUserQuestion": "kantan-agents chat, at a terminal,",
    "ExitPlanMode": "the plan mode of kantan-agents chat",
}
"""The tools that only exist in a chat."""

# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.
ModelOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--model",
        metavar="NAME",
        help="Model name for kantan-llm, such as gpt-6.1-terra, gemini-2.5-pro or ollama/llama3.2.",
        show_default=False,
    ),
]


@attrs.frozen(kw_only=True)
class AgentRunOptions:
    """How a command runs an agent."""

    model: ModelOption = None
    instructions: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--instructions",
            metavar="TEXT|@FILE",
            help="System prompt without --agent; may contain placeholders such as {{ $ctx.customer.name }}. "
            f'Default: "{INSTRUCTIONS}"',
            show_default=False,
        ),
    ] = None
    context_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--context",
            metavar="FILE.json",
            help="Context of the run or of each conversation, a JSON object such as `run --json` prints.",
            show_default=False,
        ),
    ] = None
    project_instructions: Annotated[
        str,
        typer.Option(
            "--project-instructions",
            metavar="ask|use|off",
            help="Whether the agent gets the nearest AGENTS.md or CLAUDE.md: ask, for an agent of a file "
            "or with --tools, if you have agreed to it; use, always; off, never.",
            show_default=False,
        ),
    ] = "ask"
    root: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--tools",
            metavar="DIR",
            help="Tools for the files below this folder: Read, Glob, Grep and LS; and TodoWrite.",
            show_default=False,
        ),
    ] = None
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="With --tools: also Write, Edit and MultiEdit. A file must be read with Read before it is "
            "changed.",
        ),
    ] = False
    shell: Annotated[
        bool,
        typer.Option(
            "--shell", help="With --tools: also Bash, which starts in the folder, BashOutput and KillShell."
        ),
    ] = False
    network: Annotated[bool, typer.Option("--network", help="With --tools: also WebFetch.")] = False
    sandbox: Annotated[
        str,
        typer.Option(
            "--sandbox",
            metavar="auto|required|off",
            help="Whether Bash needs a sandbox: auto uses one if there is one, required fails without one "
            "(E168), off uses none.",
            show_default=False,
        ),
    ] = "auto"
    max_turns: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--max-turns",
            metavar="N",
            min=1,
            help="Maximum number of model calls of an answer. Default: maxTurns of the agent's file, or 100.",
            show_default=False,
        ),
    ] = None
    approved: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--yes",
            metavar="TOOL",
            help="Approve all calls of this tool, or only some, as in 'Bash(git status:*)', "
            "'Write(docs/**)' or mcp__SERVER. A protected file needs its path: 'Edit(.git/config)'. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None
    asked: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--ask",
            metavar="TOOL",
            help="Calls of this tool need an approval too, or only some, as in 'Read(.env*)'. --yes counts "
            "first. May be repeated.",
            show_default=False,
        ),
    ] = None
    no_hooks: Annotated[
        bool, typer.Option("--no-hooks", help="Do not run the hooks of your hooks.json, and do not read it.")
    ] = False
    db: DatabaseOption = DATABASE
    no_record: Annotated[bool, typer.Option("--no-record", help="Do not record the run.")] = False

    def check(self, invocation: typer.Context, agent: str | None) -> None:
        """Check that no option excludes another."""
        if agent is not None and self.instructions is not None:
            raise InvalidOptionError(option="--agent", reason="cannot be combined with --instructions")
        if self.no_record and is_named(invocation):
            raise InvalidOptionError(option="--no-record", reason="cannot be combined with --db")

    def tools(self) -> list[Any]:
        """Return the toolkit's tools. Changes need an approval."""
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
        # Imported here: most commands do not need it.
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

    def turns_of(self, agent: Agent[Any]) -> dict[str, Any]:
        """Return ``max_turns``, unless the agent's file sets it: the SDK's ten are too few for files."""
        if self.max_turns is None and agent.sdk_agent.turn_limit is not None:
            return {}
        return {"max_turns": self.max_turns or _TURNS}
