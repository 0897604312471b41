"""The file tools of one root folder."""

from __future__ import annotations

import attrs
from agents import FunctionTool

from kantan_agents.toolkit.files.editing.consent import Consent, ProtectedChoice
from kantan_agents.toolkit.files.editing.edit import edit_tool, multi_edit_tool
from kantan_agents.toolkit.files.editing.write import write_tool
from kantan_agents.toolkit.files.find import glob_tool
from kantan_agents.toolkit.files.grep.tool import grep_tool
from kantan_agents.toolkit.files.known_files import KnownFiles
from kantan_agents.toolkit.files.list_folder import ls_tool
from kantan_agents.toolkit.files.read import read_tool
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.read_only import mark_read_only


def file_tools(
    root: Root,
    *,
    write: bool,
    approval: bool,
    protected: ProtectedChoice | None = None,
    read_first: bool = False,
) -> list[FunctionTool]:
    """Return the file tools; ``protected`` None means ``"ask"`` with ``approval``, else ``"refuse"``."""
    known = KnownFiles() if read_first else None
    root = attrs.evolve(root, may_name=lambda path: rules.may_name(path))  # noqa: PLW0108 - made below
    read = read_tool(root, known)
    rules = ReadRules(root, facts_of(read))
    tools = [read, glob_tool(root, rules), grep_tool(root, rules), ls_tool(root, rules)]
    for tool in tools:
        mark_read_only(tool)
    if write:
        chosen = protected or ("ask" if approval else "refuse")
        consent = Consent(root, approval=approval, protected=chosen, known=known)
        tools += [
            write_tool(root, consent),
            edit_tool(root, rules, consent),
            multi_edit_tool(root, rules, consent),
        ]
    rules.others.update((tool.name, facts_of(tool)) for tool in tools)
    return tools
