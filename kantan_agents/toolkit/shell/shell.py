"""``ShellTools``: the shared state of the shell tools."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs
from agents import FunctionTool
from anyio import to_thread

from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import SandboxUnavailableError, ShellUnavailableError
from kantan_agents.support.log import get_logger
from kantan_agents.support.noted_changes import changes_noted
from kantan_agents.tool_rules.keywords import compiled
from kantan_agents.toolkit.checked_tool import bad_input
from kantan_agents.toolkit.shell.background import used_by
from kantan_agents.toolkit.shell.bounded_output import LatestOutput
from kantan_agents.toolkit.shell.command import CommandEnding, ShellCommand
from kantan_agents.toolkit.shell.descriptions import (
    about,
    all_about,
    bash_description,
    briefly,
    result_text,
    state_of,
)
from kantan_agents.toolkit.shell.environment import clean_environment, without_loaders
from kantan_agents.toolkit.shell.limits import ShellLimits
from kantan_agents.toolkit.shell.pinned import Pinned
from kantan_agents.toolkit.shell.sandbox import TEMPORARY, Sandbox, find_sandbox
from kantan_agents.toolkit.shell.shells import Shells, ShellsOfRuns
from kantan_agents.toolkit.shell.supervised import Launch, pinned_by_running, runs_around
from kantan_agents.tools.listing import shown_each_turn

SandboxChoice = Literal["auto", "required", "off"]

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
_LONGEST_COMMAND = 100_000  # Linux starts no program with an argument of more than 128 KiB
_log = get_logger("kantan_agents.toolkit")


@attrs.frozen
class ShellOptions:
    """The checked options of ``shell_tools``; ``root`` contains no links."""

    root: str
    limits: ShellLimits
    sandbox: SandboxChoice
    writes: bool
    network: bool
    environment: Mapping[str, str]
    readable: tuple[str, ...]
    writable: tuple[str, ...] = ()


class ShellTools:
    """Runs commands for agents."""

    def __init__(self, options: ShellOptions) -> None:
        self._options = options
        self._shells = ShellsOfRuns(
            options.limits.background_shells, options.limits.paused_seconds, options.root
        )
        self._found: tuple[str, Sandbox | str] | None = None

    async def shown_tool(self, tool: FunctionTool, _agent: Any, _wrapper: Any, _layers: Any) -> FunctionTool:
        """Return ``Bash`` with the state of the sandbox in its description."""
        self._shells.adopt(current_run.get())
        _, sandbox = await self._place()
        description = bash_description(self._options.limits, about(sandbox))
        if tool.description != description:
            tool.description = description  # the same at every later turn
        return tool

    async def run(self, _wrapper: Any, given: dict[str, Any]) -> str:
        """The tool ``Bash``."""
        line: str = given["command"]
        if "\0" in line or len(line.encode()) > _LONGEST_COMMAND:
            raise bad_input("Bash", f"command must have at most {_LONGEST_COMMAND:,} bytes, and no NUL")
        limits = self._options.limits
        shell, sandbox = await self._place()
        run = _open_run()
        shells, lasting = self._shells.of(run), self._lasting(run)
        launch = await self._launch([shell, "-c", line], sandbox, lasting.temporary)
        if (notes := changes_noted.get()) is not None:
            notes.command_starts(line)
        in_background = given.get("run_in_background", False)
        seconds = limits.background_seconds if in_background else limits.seconds
        seconds = given["timeout"] / 1000 if "timeout" in given else seconds
        if in_background:
            latest = LatestOutput(limits.output_bytes // 2)
            begun = lasting.begin(line, lambda: ShellCommand(launch, seconds, latest))
            until = "this task" if lasting is shells else "the conversation"
            started = f"Running in the background as {begun.id}, for at most {seconds:g} s"
            return f"{started}, and until {until} ends. {briefly(sandbox)}"
        command = ShellCommand(launch, seconds)
        ending = await shells.run(command)
        if not ending.is_started:
            raise ShellUnavailableError(reason=str(ending.problem))
        _log_moved(ending)
        status = [all_about(ending, limits, seconds), briefly(sandbox)]
        return result_text(status, command.output.take(is_last=True))

    async def read(self, _wrapper: Any, given: dict[str, Any]) -> str:
        """The tool ``BashOutput``."""
        shell = self._lasting(current_run.get()).get(given["bash_id"])
        matching = _filter(given.get("filter"))
        command = shell.command
        shell.is_known_to_end |= command.is_over
        output = command.output.take(is_last=command.is_over)
        if command.ending is not None:
            _log_moved(command.ending)
        if matching is not None:
            output = "\n".join(filter(matching, output.splitlines()))
        return result_text([state_of(command)], output)

    async def kill(self, _wrapper: Any, given: dict[str, Any]) -> str:
        """The tool ``KillShell``."""
        shell = self._lasting(current_run.get()).get(given["shell_id"])
        shell.is_known_to_end = True
        if shell.command.is_over:
            return f"{shell.id} had already ended."
        await shell.command.killed()
        return f"{shell.id} is ended, with all of its processes. Its last output can be read with BashOutput."

    def _lasting(self, run: Run | None) -> Shells:
        used = used_by(run)
        if used is None:
            return self._shells.of(run)
        return used.of(self, self._options.limits.background_shells, self._options.root)

    async def _place(self) -> tuple[str, Sandbox | str]:
        if self._found is None:
            self._found = await to_thread.run_sync(self._find)
        if self._options.sandbox == "required" and isinstance(self._found[1], str):
            raise SandboxUnavailableError(reason=self._found[1])
        return self._found

    def place_now(self) -> Sandbox | str:
        """Return the sandbox of commands, or why none works. Blocks."""
        if self._found is None:
            self._found = self._find()
        if self._options.sandbox == "required" and isinstance(self._found[1], str):
            raise SandboxUnavailableError(reason=self._found[1])
        return self._found[1]

    def _find(self) -> tuple[str, Sandbox | str]:
        if os.name != "posix":
            raise ShellUnavailableError(reason="this system has no POSIX shell")
        if not sys.executable:
            raise ShellUnavailableError(reason="sys.executable, which watches commands, is not known")
        shell = next((one for one in _SHELLS if os.access(one, os.X_OK)), None) or shutil.which("bash")
        if shell is None:
            raise ShellUnavailableError(reason="neither bash nor /bin/sh is installed")
        options = self._options
        if options.sandbox == "off":
            return shell, "it is switched off"
        sandbox = find_sandbox(
            options.root,
            shell,
            writes=options.writes,
            network=options.network,
            readable=options.readable,
            writable=options.writable,
            shared_bytes=options.limits.memory_bytes,
        )
        if isinstance(sandbox, str):
            _log.warning("shell_without_sandbox", root=options.root, reason=sandbox)
        return shell, sandbox

    async def _launch(self, argv: list[str], sandbox: Sandbox | str, temporary: Any) -> Launch:
        options = self._options
        environment = clean_environment(options.environment)
        if not isinstance(sandbox, Sandbox):
            return Launch(argv, options.root, environment, options.limits, is_sandboxed=False)
        environment = {**environment, "HOME": TEMPORARY, "TMPDIR": TEMPORARY, **options.environment}
        outside, inside = without_loaders(environment)
        directory = await temporary()
        pinned = await to_thread.run_sync(_pinned, sandbox)
        return Launch(
            sandbox.around(argv, directory, pinned, inside),
            options.root,
            outside,
            options.limits,
            is_sandboxed=True,
            temporary=directory,
            pinned=pinned,
        )


def _pinned(sandbox: Sandbox) -> Pinned:
    """Return the current pins; raise E167 if the directory was replaced, or may be replaced meanwhile."""
    if os.path.realpath(sandbox.root) != sandbox.root:
        raise ShellUnavailableError(reason=f"{sandbox.root} was replaced by a link")
    around = runs_around(sandbox.root)
    if around is not None:  # a mounted path could be replaced after the check
        reason = f"a command is running in {around}, which {sandbox.root} is a part of"
        raise ShellUnavailableError(reason=reason)
    pinned = sandbox.pinned()
    for other in pinned_by_running(sandbox.root):
        pinned = pinned.beside(other)
    return pinned


def _log_moved(ending: CommandEnding) -> None:
    if ending.moved:
        _log.warning("shell_made_protected_files", moved=[list(one) for one in ending.moved])


def shell_of(tools: Iterable[FunctionTool]) -> ShellTools | None:
    """Return the object behind this library's ``Bash``."""
    bound = (getattr(shown_each_turn(tool), "__self__", None) for tool in tools)
    return next((one for one in bound if isinstance(one, ShellTools)), None)


def _open_run() -> Run | None:
    """Raise E167 if the run is over and a forgotten task calls."""
    run = current_run.get()
    if run is not None and run.outcome is not None:
        raise ShellUnavailableError(reason="the run is over")
    return run


def _filter(pattern: str | None) -> Any:
    if pattern is None:
        return None
    try:
        return compiled({"type": "string", "pattern": pattern}).is_valid
    except ValueError as error:
        raise bad_input("BashOutput", "filter is not a regular expression") from error
