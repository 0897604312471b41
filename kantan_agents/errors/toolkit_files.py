"""E160 to E166, E202: the ready-made tools for files."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class OutsideRootError(KantanAgentsError):
    """A path leaves the root folder of a toolkit.

    Attributes:
        path: The path as it was written.
        reason: Where it leads, and what to use instead.
    """

    code = "E160"
    template = "The path {path!r} is outside of the root folder: {reason}"
    path: str
    reason: str


class FileNotUsableError(KantanAgentsError):
    """A file or folder cannot be opened, read or written by a tool.

    Attributes:
        path: The path, relative to the root folder.
        reason: Why not, and what to do.
    """

    code = "E161"
    template = "Cannot use {path!r}: {reason}"
    path: str
    reason: str


class EditRefusedError(KantanAgentsError):
    """An edit does not fit the file, which is unchanged.

    Attributes:
        path: The file, relative to the root folder.
        reason: What does not fit, with the nearest lines of the file.
    """

    code = "E162"
    template = "Cannot edit {path!r}: {reason}"
    path: str
    reason: str


class FileChangedError(KantanAgentsError):
    """Another program changed a file while a tool was changing it, or a person was asked about the change.

    The tool has written nothing.

    Attributes:
        path: The file, relative to the root folder.
    """

    code = "E163"
    template = "{path!r} was changed by another program in the meantime: read it again, then repeat"
    path: str


class InvalidPatternError(KantanAgentsError):
    """A glob pattern or a regular expression cannot be used.

    Attributes:
        pattern: The pattern.
        reason: What is wrong with it.
    """

    code = "E164"
    template = "Invalid pattern {pattern!r}: {reason}"
    pattern: str
    reason: str


class ToolkitUnavailableError(KantanAgentsError):
    """This system lacks what the tools need to stay inside their root folder.

    Attributes:
        reason: What is missing.
    """

    code = "E165"
    template = "The toolkit cannot be used on this system: {reason}"
    reason: str


class FileForbiddenError(KantanAgentsError):
    """The tool rules of the run do not permit to read a file that another tool would have shown.

    Attributes:
        path: The file, relative to the root folder.
    """

    code = "E166"
    template = "The tool rules do not permit to read {path!r}, so it cannot be edited either"
    path: str


class ProtectedPathError(KantanAgentsError):
    """A file decides what is executed or what tools may do, and no person has agreed to its change.

    Attributes:
        path: The file, relative to the root folder.
        reason: What it decides.
        hint: What to do.
    """

    code = "E202"
    template = "{path!r} is protected, because {reason}: {hint}"
    path: str
    reason: str
    hint: str
