"""``FileChange``: the effect of a call, for approvals."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
from agents import FunctionTool

from kantan_agents.errors import KantanAgentsError
from kantan_agents.toolkit.files.editing.folders import locked_folder
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import Parts, open_file
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.text import BinaryFileError, FileText
from kantan_agents.toolkit.protected import why_protected
from kantan_agents.tools.server_names import implementation_of

LARGEST = 16 << 20
_MARK = "__kantan_change__"
ToolT = TypeVar("ToolT", bound=FunctionTool)


@attrs.frozen
class FileChange:
    """The effect of a call on a file. Equal changes have the same effect.

    ``before`` is None for a new file. With a ``problem``, the call would fail.
    """

    path: str
    protected: str | None
    before: str | None = None
    after: str = ""
    problem: str | None = None

    @classmethod
    def of(cls, root: Root, parts: Parts, texts: Callable[[], tuple[str | None, str]]) -> FileChange:
        """Return the change of a file; ``texts`` may raise any error of the call."""
        path, protected = shown_path(parts), why_protected(root.path, parts)
        try:
            before, after = texts()
        except (
            KantanAgentsError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:  # such arguments fail anyway
            return cls(path, protected, problem=str(error))
        return cls(path, protected, before, after)


def declare_change(tool: ToolT, change: Callable[[Mapping[str, Any]], FileChange]) -> ToolT:
    """Declare the function that shows the change of a call. It may block."""
    for place in (tool, implementation_of(tool)):
        if place is tool or inspect.isfunction(place):
            setattr(place, _MARK, change)
    return tool


def change_of(tool: Any, arguments: Mapping[str, Any]) -> FileChange | None:
    """Return the change of a call; None for other tools and wrong paths."""
    places = () if tool is None else (tool, implementation_of(tool))
    change = next((found for one in places if (found := getattr(one, _MARK, None)) is not None), None)
    try:
        return None if change is None else change(arguments)
    except KantanAgentsError:
        return None


def text_before(root: Root, parts: Parts) -> str | None:
    """Return the current content, or one line about a binary file."""
    try:
        with locked_folder(root, parts) as folder:
            os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            file = open_file(root, folder, parts)
            with open(file, "rb") as opened:  # noqa: PTH123 - a descriptor
                data = opened.read(LARGEST + 1)
                size = os.fstat(file).st_size
    except FileNotFoundError:
        return None
    except KantanAgentsError:
        return None  # a folder on the way is missing, or the call fails
    try:
        if len(data) <= LARGEST:
            return FileText.decode(data).text
    except BinaryFileError:
        pass
    return f"[{size:,} bytes, which are not shown]\n"
