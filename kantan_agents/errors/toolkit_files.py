"""E160 to E166, E202: the ready-made tools for files."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class OutsideRootError(KantanAgentsError):
    """A path leaves the root folder of a toolkit, or ``kantan-agents`` stores its data there.

    It leaves it by ``..``, as an absolute path, through a symbolic link, or into another file system mounted
    there.

    Fix: Use a path below the folder, or create a toolkit of a higher one.

    Attributes:
        path: The written path.
        reason: Where it leads, and what to use instead.
    """

    code = "E160"
    template = "The path {path!r} is outside of the root folder: {reason}"
    path: str
    reason: str


class FileNotUsableError(KantanAgentsError):
    """A file or folder is missing, of another kind, binary, a symbolic link, too large, or not permitted.

    Fix: ``reason`` has the nearest path, or the target of a link.

    Attributes:
        path: The path, relative to the root folder.
        reason: Why not, and what to do.
    """

    code = "E161"
    template = "Cannot use {path!r}: {reason}"
    path: str
    reason: str


class EditRejectedError(KantanAgentsError):
    """An edit does not fit the file, which is unchanged.

    The string to replace does not occur, or more than once; the file's encoding lacks a character; or, with
    ``read_first``, the file was not read before.

    Fix: ``reason`` has the nearest lines.

    Attributes:
        path: The file, relative to the root folder.
        reason: What does not fit, with the nearest lines of the file.
    """

    code = "E162"
    template = "Cannot edit {path!r}: {reason}"
    path: str
    reason: str


class FileChangedError(KantanAgentsError):
    """Another program changed the file after it was read, or while a tool or an approval was in progress.

    The tool has written nothing.

    Attributes:
        path: The file, relative to the root folder.
    """

    code = "E163"
    template = "{path!r} was changed by another program in the meantime: read it again, then repeat"
    path: str


class InvalidPatternError(KantanAgentsError):
    """A glob pattern or a regular expression is invalid, too long or too large.

    Fix: Correct it. Expressions have the syntax of RE2.

    Attributes:
        pattern: The pattern.
        reason: What is wrong with it.
    """

    code = "E164"
    template = "Invalid pattern {pattern!r}: {reason}"
    pattern: str
    reason: str


class ToolkitUnavailableError(KantanAgentsError):
    """This system, such as Windows, lacks the functions that confine the tools to their root folder.

    Fix: Use Linux or macOS.

    Attributes:
        reason: What is missing.
    """

    code = "E165"
    template = "The toolkit cannot be used on this system: {reason}"
    reason: str


class FileForbiddenError(KantanAgentsError):
    """The rules deny ``Read`` for a file that ``Edit`` or ``MultiEdit`` would change.

    Fix: Allow both, or neither.

    Attributes:
        path: The file, relative to the root folder.
    """

    code = "E166"
    template = "The tool rules do not permit to read {path!r}, so it cannot be edited either"
    path: str


class ProtectedPathError(KantanAgentsError):
    """A protected file, such as ``.git/config``, can start programs, and no person approved its change.

    Fix: Approve exactly that call, or pass ``protected="ask"`` or ``"allow"`` to ``toolkit``.

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
