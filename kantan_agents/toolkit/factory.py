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

        agent = Agent("reviewer", "Review the code.", tools=toolkit("."))

    - ``Read`` returns up to 2,000 numbered lines, ``Glob`` up to 200 paths with the latest change first,
      ``Grep`` paths, lines or counts, ``LS`` up to 1,000 entries with sizes. A shortened result ends with a
      line in brackets that explains how to get the rest.
    - ``Glob``: ``*`` and ``?`` match no slash, ``**`` matches any number of folders, ``{py,md}`` is a choice.
      Dotfiles match. The ``glob`` of ``Grep`` is the same, but without a slash it matches in every folder,
      and a leading ``!`` inverts it.
    - ``Grep`` has the syntax of RE2: every pattern takes linear time, without look-around and
      back-references; ``\\w``, ``\\d`` and ``\\b`` are ASCII only.
    - ``Glob`` and ``Grep`` omit ``.git`` and files that ``.gitignore`` excludes, unless ``path`` names them.
      A scan stops after 60 seconds and reports it.
    - ``Edit`` needs an ``old_string`` that occurs once, or ``replace_all``; ``\\n`` matches every line end.
      It preserves the encoding (UTF-8, UTF-16 and UTF-32 with a byte order mark, else Latin-1), byte order
      mark, line ends, mode and access control lists. ``MultiEdit`` makes all edits or none. The new file
      replaces the old one atomically; if another program has changed it in the meantime, nothing is written
      (E163). A started edit finishes even if its run is canceled.
    - No tool leaves the folder. Symbolic links are not followed; the error names a target inside the folder.
      Other file systems mounted below the folder, pipes, sockets and devices are rejected. A bind mount of
      the same file system and a hard link to a file outside are not detected; ``Write`` and ``Edit`` never
      change the target of a hard link. The data folder of ``kantan-agents`` is closed (E160).

    Args:
        root: The folder. It must exist. This call resolves a link once.
        write: Adds ``Write``, ``Edit`` and ``MultiEdit``.
        shell: Adds the tools that run commands: ``shell_tools``. Commands can change files even without
            ``write``, and only a sandbox confines them to the folder.
        network: Adds the tools that read from the web: ``web_tools``.
        approval: Whether the tools of ``write``, ``shell`` and ``network`` wait for an approval, as SDK tools
            with ``needs_approval`` do.
        protected: How ``Write``, ``Edit`` and ``MultiEdit`` treat files that determine which code runs or is
            permitted, such as ``.git/config``, ``.claude/agents/*.md`` or ``.venv``: ``"ask"`` waits for an
            approval of each call, ``"refuse"`` rejects it with E202, ``"allow"`` treats them as any other
            file. None means ``"ask"`` with ``approval``, else ``"refuse"``.
        read_first: Whether ``Write``, ``Edit`` and ``MultiEdit`` change an existing file only if ``Read`` has
            read it and it has not changed since (E162, E163). A read counts for all agents and runs with
            these tools.

    Returns:
        The tools, for ``Agent(tools=[...])``. Any number of agents and runs can share the file tools.

    Raises:
        InvalidOptionError: E75: the root is not a folder, or an option has an invalid value.
        ToolkitUnavailableError: E165: the system cannot confine tools to a folder, as on Windows.
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
