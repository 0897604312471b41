"""The text of ``AGENTS.md`` or ``CLAUDE.md``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kantan_agents.core.templating import without_markers
from kantan_agents.errors import InvalidOptionError, ProjectInstructionsError
from kantan_agents.subagent_files.loading.directories import up_to_the_root
from kantan_agents.support.arguments import checked_int, checked_list, checked_path
from kantan_agents.tools.skills.confined import RefusedPathError, read_below

NAMES: Final = ("AGENTS.md", "CLAUDE.md")
MAX_CHARS: Final = 32_000


def project_instructions(
    root: str | os.PathLike[str], names: Sequence[str] = NAMES, *, max_chars: int = MAX_CHARS
) -> str:
    r"""Return the project instructions for work in a folder, to be added to an agent's instructions.

        Agent("dev", f"You write code.\n\n{project_instructions('.')}")

    The first existing file is used: in the folder itself, then in the folders above it, up to the root of the
    repository. Nothing in it is executed, no other file is included, and placeholders such as
    ``{{ $ctx.name }}`` are never filled: an invisible character (U+2060) after their braces makes them plain
    text. Only this call reads files, so call it where blocking is allowed, such as at start-up.

    Args:
        root: The folder.
        names: Names of the files; earlier names are preferred in the same folder.
        max_chars: The most characters of the file; the rest is cut off, and a last line gives its length.

    Raises:
        ProjectInstructionsError: E192, the file cannot be read, is not UTF-8 text, or is a link out of the
            repository.
        InvalidOptionError: E75, an argument has an invalid value, or ``root`` is not a folder.

    Returns:
        The text after a first line that names the file; empty if there is no file.
    """
    folder = Path(checked_path("root", root))
    limit = checked_int("max_chars", max_chars, 1)
    wanted = [_checked_name(name) for name in checked_list("names", names)]
    if not folder.is_dir():
        raise InvalidOptionError(option="root", reason=f"is not a folder: {str(folder)!r}")
    found = nearest_file(folder, wanted)
    text = "" if found is None else text_of(*found)
    if found is None or not text:
        return ""
    return without_markers(f"# Project instructions ({found[0].name})\n\n{cut_to(text, limit)}")


def nearest_file(folder: Path, names: Sequence[str] = NAMES) -> tuple[Path, Path] | None:
    """Return the file for work in a folder, and its repository's root."""
    above = up_to_the_root(folder)
    paths = (place / name for place in above for name in names)
    return next(((file, above[-1]) for file in paths if os.path.lexists(file)), None)


def _checked_name(name: object) -> str:
    if isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0"):
        return name
    raise InvalidOptionError(option="names", reason=f"must hold names of files, not {name!r:.100}")


def text_of(file: Path, boundary: Path) -> str:
    """Return a file's stripped text; a link must stay below ``boundary``, itself a path without links.

    Raises:
        ProjectInstructionsError: E192, it cannot be read, is not UTF-8 text, or leads out of ``boundary``.
    """
    # A link to the other file is common: `CLAUDE.md` to `AGENTS.md`.
    target = Path(os.path.realpath(file))
    if boundary not in target.parents:
        reason = "it is a link that leads out of the repository"
        raise ProjectInstructionsError(path=str(file), reason=reason)
    try:
        return read_below(boundary, target.relative_to(boundary).as_posix()).strip()
    except RefusedPathError as error:
        raise ProjectInstructionsError(path=str(file), reason=str(error)) from error


def cut_to(text: str, limit: int) -> str:
    """Add a line with the number of missing characters."""
    cut = f"\n[{len(text) - limit} more characters are left out]" if len(text) > limit else ""
    return f"{text[:limit]}{cut}"
