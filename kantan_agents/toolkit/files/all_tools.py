"""The file tools of one root folder."""

from __future__ import annotations

import attrs
from agents import FunctionTool

from kantan_agents.toolkit.files.editing.edit import edit_tool, multi_edit_tool
from kantan_agents.toolkit.files.editing.write import write_tool
from kantan_agents.toolkit.files.find import glob_tool
from kantan_agents.toolkit.files.grep.tool import grep_tool
from kantan_agents.toolkit.files.list_folder import ls_tool
from kantan_agents.toolkit.files.read import read_tool
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.tools.facts import facts_of


def file_tools(root: Root, *, write: bool, approval: bool) -> list[FunctionTool]:
    """Return the tools for the files of a root folder.

    Args:
        root: The root folder.
        write: Whether the tools that change files are wanted.
        approval: Whether these need an approval.
    """
    root = attrs.evolve(root, may_name=lambda path: rules.may_name(path))  # noqa: PLW0108 - made below
    read = read_tool(root)
    rules = ReadRules(root, facts_of(read))
    tools = [read, glob_tool(root, rules), grep_tool(root, rules), ls_tool(root, rules)]
    if write:
        tools += [
            write_tool(root, approval=approval),
            edit_tool(root, rules, approval=approval),
            multi_edit_tool(root, rules, approval=approval),
        ]
    rules.others.update((tool.name, facts_of(tool)) for tool in tools)
    return tools
