"""``Write``: a file with new content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents.errors import EditRejectedError, FileNotUsableError
from kantan_agents.support.noted_changes import changes_noted
from kantan_agents.toolkit.files.editing.changes import FileChange, declare_change, text_before
from kantan_agents.toolkit.files.editing.consent import CallConsent, Consent
from kantan_agents.toolkit.files.editing.folders import locked_folder, parts_of_file
from kantan_agents.toolkit.files.editing.replace import replace_file
from kantan_agents.toolkit.files.file_tool import file_tool
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import Parts, open_file
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.threads import to_its_end


def write_tool(root: Root, consent: Consent) -> FunctionTool:
    """Return the tool ``Write``."""

    async def write(
        _context: ToolContext[Any],
        file_path: str,
        content: str,
    ) -> str:
        """Write a file as UTF-8. An existing file is replaced, missing folders are created.

        Args:
            file_path: Path of the file, relative to the root folder.
            content: The whole content of the file.
        """
        agreed = consent.of_call(_context, "Write")
        return await to_its_end(partial(write_file, root, file_path, content, agreed))

    tool = file_tool(write, "Write", root, parameter="file_path", needs_approval=consent.needs_approval)
    return declare_change(tool, partial(_change, root))


def write_file(root: Root, file_path: str, content: str, agreed: CallConsent) -> str:
    """Write a file; return a report."""
    parts = parts_of_file(root, file_path)
    path = shown_path(parts)
    agreed.check(parts)
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise EditRejectedError(path=path, reason="the content is not valid Unicode") from error
    with locked_folder(root, parts, is_made=True) as folder:
        before = _existing(root, folder, parts)
        agreed.check_state(parts, before)
        if (notes := changes_noted.get()) is not None:
            notes.file_changes(root.path, parts, folder, before, data)
        replace_file(folder, parts, data, before)
        agreed.note_written(parts, before, folder)
    done = "Created" if before is None else "Replaced the content of"
    return f"{done} {path} ({len(data):,} bytes)."


def _change(root: Root, arguments: Mapping[str, Any]) -> FileChange:
    parts = parts_of_file(root, str(arguments.get("file_path")))
    content = str(arguments.get("content"))
    return FileChange.of(root, parts, lambda: (text_before(root, parts), content))


def _existing(root: Root, folder: int, parts: Parts) -> os.stat_result | None:
    try:
        os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileNotUsableError(path=shown_path(parts), reason=error.strerror or str(error)) from error
    file = open_file(root, folder, parts, os.O_RDWR)
    try:
        return os.fstat(file)
    finally:
        os.close(file)
