"""The factory of the ready-made tools."""

from __future__ import annotations

import os

from agents import FunctionTool

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_bool
from kantan_agents.toolkit.files import file_tools
from kantan_agents.toolkit.files.editing.consent import ProtectedChoice
from kantan_agents.toolkit.files.root import Root


def toolkit(
    root: str | os.PathLike[str],
    *,
    write: bool = False,
    shell: bool = False,
    network: bool = False,
    approval: bool = True,
    protected: ProtectedChoice | None = None,
    read_first: bool = False,
) -> list[FunctionTool]:
    """Return ready-made tools for the files below a folder, under the names that subagent files use.

    Without further options, the tools only read: ``Read``, ``Glob``, ``Grep`` and ``LS``. None of them leaves
    the folder. They follow no symbolic link and enter no other file system that is mounted below it.

        agent = Agent("reviewer", "Review the code.", tools=toolkit("."))

    Args:
        root: The folder. It must exist.
        write: Adds ``Write``, ``Edit`` and ``MultiEdit``.
        shell: Adds the tools that run commands. A command is not confined to the folder by the file tools'
            means; see the guide.
        network: Adds the tools that read from the web.
        approval: Whether the tools of ``write``, ``shell`` and ``network`` wait for an approval, as those of
            the SDK with ``needs_approval``.
        protected: What ``Write``, ``Edit`` and ``MultiEdit`` do with files that decide what is executed or
            permitted, such as ``.git/config``, ``.claude/agents/*.md`` or ``.venv``: ``"ask"`` waits for an
            approval of each call, ``"refuse"`` refuses it with E202, ``"allow"`` treats them as any other
            file. None stands for ``"ask"`` with ``approval``, and for ``"refuse"`` without.
        read_first: Whether ``Write``, ``Edit`` and ``MultiEdit`` change an existing file only if ``Read`` has
            read it, and nothing has changed it since. All agents and runs with these tools count together.

    Returns:
        The tools, for ``Agent(tools=[...])``. Any number of agents and runs can share those for files.

    Raises:
        InvalidOptionError: E75, the root is not a folder, or an option has a wrong value.
        ToolkitUnavailableError: E165, the system cannot confine tools to a folder, as on Windows.
    """
    flags = {
        "write": write,
        "shell": shell,
        "network": network,
        "approval": approval,
        "read_first": read_first,
    }
    for option, value in flags.items():
        checked_bool(option, value)
    if protected not in (None, "ask", "refuse", "allow"):
        reason = f'must be "ask", "refuse", "allow" or None, not {protected!r}'
        raise InvalidOptionError(option="protected", reason=reason)
    folder = Root.at(root)
    tools = file_tools(folder, write=write, approval=approval, protected=protected, read_first=read_first)
    if shell:
        from kantan_agents.toolkit.shell import shell_tools

        tools += shell_tools(folder.path, approval=approval)
    if network:
        from kantan_agents.toolkit.web import web_tools

        tools += web_tools(approval=approval)
    return tools
