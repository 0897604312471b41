"""The shell tools: ``Bash``, ``BashOutput`` and ``KillShell``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from agents import FunctionTool

from kantan_agents.errors import (
    InvalidOptionError,
    SandboxUnavailableError,
    ShellUnavailableError,
    TooManyShellsError,
    UnknownShellError,
)
from kantan_agents.support.arguments import checked_bool, checked_list, checked_path
from kantan_agents.toolkit.checked_tool import checked_tool
from kantan_agents.toolkit.shell.background import BackgroundShells
from kantan_agents.toolkit.shell.descriptions import (
    BASH_OUTPUT,
    BASH_OUTPUT_PROPERTIES,
    KILL_SHELL,
    KILL_SHELL_PROPERTIES,
    SANDBOXED_OR_NOT,
    bash_description,
    bash_properties,
)
from kantan_agents.toolkit.shell.environment import checked_environment
from kantan_agents.toolkit.shell.limits import ShellLimits
from kantan_agents.toolkit.shell.shell import SandboxChoice, ShellOptions, ShellTools
from kantan_agents.tools.listing import show_each_turn
from kantan_agents.tools.read_only import mark_read_only

__all__ = ["BackgroundShells", "ShellLimits", "shell_tools"]


def shell_tools(
    root: str | os.PathLike[str],
    *,
    approval: bool = True,
    limits: ShellLimits | None = None,
    sandbox: SandboxChoice = "auto",
    write: bool = True,
    network: bool = False,
    env: Mapping[str, str] | None = None,
    readable: Iterable[str | os.PathLike[str]] = (),
    writable: Iterable[str | os.PathLike[str]] = (),
) -> list[FunctionTool]:
    """Create the tools ``Bash``, ``BashOutput`` and ``KillShell``, under the names that agent files use.

    Each command is a separate shell in ``root``, without input, with a clean environment and within limits.
    When it ends, is canceled or takes too long, all of its processes are ended. Background commands end with
    the run or with ``BackgroundShells``. Everything ends with this process, even if it is killed. Under the
    SDK's own ``Runner``, the end of a run does not end background commands: they end with their event loop,
    with the process, or after ``background_seconds``.

    Where bubblewrap is installed and works, commands run in a sandbox: they may change ``root`` and a
    ``/tmp`` of the run, read the system's programs, and see neither home directories nor other processes.
    They cannot change files in ``root`` that determine which code runs outside it or what tools may do: the
    Python environment of this process, ``.git/config``, the files of agents, skills and MCP servers, and
    others that the page "What a folder can and cannot do" lists.

    Args:
        root: The directory of the commands.
        approval: Whether each call of ``Bash`` needs an approval.
        limits: The limits of a command; None for the defaults of ``ShellLimits``.
        sandbox: ``"auto"`` uses a sandbox if one is available, ``"required"`` runs no command without one,
            ``"off"`` uses none.
        write: Whether commands may change ``root``. Only a sandbox can prevent it, so False needs
            ``sandbox="required"``.
        network: Whether commands in a sandbox reach the network.
        env: Additional environment variables. Of this process, commands get only ``PATH``, ``HOME``,
            ``LANG``, ``LC_*``, ``TERM``, ``TZ``, ``TMPDIR`` and the user's name.
        readable: Files and directories that commands in a sandbox may read in addition to ``root``, the
            system's programs and this Python environment.
        writable: Protected files and directories in ``root`` that commands in a sandbox may write, such as
            ``.venv``. Code that this process executes stays protected.

    Raises:
        InvalidOptionError: E75: an option has an invalid value.

    Returns:
        Function tools of the SDK. Agents and runs that use them share nothing but ``root``.
    """
    path = _checked_root(root)
    options = ShellOptions(
        root=path,
        limits=_checked_limits(limits),
        sandbox=_checked_sandbox(sandbox),
        writes=checked_bool("write", write),
        network=checked_bool("network", network),
        environment=checked_environment(env),
        readable=_checked_paths("readable", readable),
        writable=_checked_writable(path, writable),
    )
    if not options.writes and options.sandbox != "required":
        reason = 'needs sandbox="required": without a sandbox, a command may change whatever its user may'
        raise InvalidOptionError(option="write=False", reason=reason)
    shell = ShellTools(options)
    bash = checked_tool(
        "Bash",
        bash_description(options.limits, SANDBOXED_OR_NOT),
        bash_properties(options.limits),
        ["command"],
        shell.run,
        returned=(ShellUnavailableError, SandboxUnavailableError, TooManyShellsError),
        approval=checked_bool("approval", approval),
        parameter="command",
    )
    show_each_turn(bash, shell.shown_tool)
    output = checked_tool(
        "BashOutput",
        BASH_OUTPUT,
        BASH_OUTPUT_PROPERTIES,
        ["bash_id"],
        shell.read,
        returned=(UnknownShellError,),
        parameter="bash_id",
    )
    kill = checked_tool(
        "KillShell",
        KILL_SHELL,
        KILL_SHELL_PROPERTIES,
        ["shell_id"],
        shell.kill,
        returned=(UnknownShellError,),
        parameter="shell_id",
    )
    return [bash, mark_read_only(output), kill]


def _checked_root(root: object) -> str:
    path = os.path.realpath(checked_path("root", root))
    if not Path(path).is_dir():
        raise InvalidOptionError(option="root", reason=f"must be a directory, and {path} is not one")
    if path == os.path.realpath("/"):
        raise InvalidOptionError(option="root", reason="must be a directory of a project, not /")
    return path


def _checked_paths(option: str, given: object, base: str = "") -> tuple[str, ...]:
    paths = (os.path.join(base, checked_path(option, one)) for one in checked_list(option, given))  # noqa: PTH118
    return tuple(str(Path(path).absolute()) for path in paths)


def _checked_writable(root: str, given: object) -> tuple[str, ...]:
    paths = tuple(map(os.path.normpath, _checked_paths("writable", given, root)))
    for path in paths:
        if not path.startswith(f"{root}/"):
            raise InvalidOptionError(option="writable", reason=f"must be paths in {root}, and {path} is not")
    return paths


def _checked_limits(limits: object) -> ShellLimits:
    if limits is None:
        return ShellLimits()
    if isinstance(limits, ShellLimits):
        return limits
    raise InvalidOptionError(option="limits", reason=f"must be ShellLimits, not {type(limits).__name__}")


def _checked_sandbox(sandbox: object) -> SandboxChoice:
    if sandbox in ("auto", "required", "off"):
        return sandbox
    raise InvalidOptionError(option="sandbox", reason=f'must be "auto", "required" or "off", not {sandbox!r}')
