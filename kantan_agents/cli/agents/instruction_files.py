"""``AGENTS.md`` or ``CLAUDE.md`` of the user and of the project."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from kantan_agents.cli.terminal.file_diff import diff_lines, visible
from kantan_agents.cli.terminal.show_quantities import count_text, counted, size_text
from kantan_agents.errors import InvalidOptionError, ProjectInstructionsError
from kantan_agents.support.invisible import without_invisible
from kantan_agents.tools.mcp.configuration.config_directory import config_directory
from kantan_agents.tools.mcp.configuration.places import is_own_file
from kantan_agents.tools.skills.project import MAX_CHARS, NAMES, cut_to, nearest_file, text_of

if TYPE_CHECKING:
    from kantan_agents.tools.mcp.configuration.entry import ServerSource

_MOST_LINES: Final = 20
_MOST_CHARACTERS: Final = 2_000


@attrs.frozen
class InstructionFile:
    """A file of instructions; ``source`` is the key of its trust record."""

    path: Path
    is_of_user: bool
    text: str
    source: ServerSource = attrs.field(eq=False)
    reason: str = attrs.field(default="", eq=False)

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def extent(self) -> str:
        """Its size and invisible characters, or why it is unused."""
        hidden = without_invisible(self.text)[1]
        parts = [
            size_text(len(self.text.encode())) if self.text else "",
            f"{counted(hidden, 'invisible character')} in it" if hidden else "",
            f"only its first {count_text(MAX_CHARS)} characters" if len(self.text) > MAX_CHARS else "",
            f"left out: {self.reason}" if self.reason else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def section(self) -> str:
        """The text for the model."""
        whose = "user" if self.is_of_user else "project"
        head = f"# {whose.capitalize()} instructions ({self.name})\n\nThis file of the {whose} says:"
        return f"{head}\n\n{cut_to(self.text, MAX_CHARS)}"


class InstructionFiles:
    """The instruction files at the start of a conversation: the user's, then the nearest of ``folder``."""

    def __init__(self, folder: Path, *, is_agreed: bool = False) -> None:
        self._folder = folder
        self.is_agreed = is_agreed
        self.is_settled = False
        self.files = self.read()
        self._unasked = () if is_agreed else self.files

    def read(self) -> tuple[InstructionFile, ...]:
        """Return the files in their current state."""
        own = config_directory()
        of_user = [] if own is None else [own / name for name in NAMES if os.path.lexists(own / name)]
        files = [_read(path, Path(os.path.realpath(path)).parent, is_of_user=True) for path in of_user[:1]]
        nearest = nearest_file(self._folder)
        if nearest is not None:
            files.append(_read(*nearest, is_of_user=False))
        found: dict[Path, InstructionFile] = {}
        for one in files:  # both are the same in the user's configuration directory
            found.setdefault(one.source.path, one)
        return tuple(found.values())

    def questions(self) -> dict[ServerSource, list[str]]:
        """Return files to accept; nothing the second time."""
        files, self._unasked = self._unasked, ()
        usable = (one for one in files if not one.reason)
        return {
            one.source: list(_beginning(visible(one.text[: 2 * _MOST_CHARACTERS]).split("\n"), one))
            for one in usable
        }

    @property
    def used(self) -> tuple[InstructionFile, ...]:
        """The files for the agent."""
        return tuple(one for one in self.files if not one.reason)

    def changes(self, now: tuple[InstructionFile, ...]) -> Iterator[str]:
        """Yield the changes as lines, invisible characters as codes."""
        known = {one.path: one.text for one in self.files}
        for one in now:
            if known.get(one.path) != one.text:
                yield from _beginning(diff_lines(known.get(one.path), one.text), one)

    def take(self, files: tuple[InstructionFile, ...]) -> None:
        """Use the versions that the user saw; unchanged files remain used or omitted."""
        known = {one: one for one in self.files}
        self.files = tuple(known.get(one, one) for one in files)


def instruction_files_for(root: Path | None, choice: str, *, is_for_project: bool) -> InstructionFiles | None:
    """Return the files for an agent, or None.

    ``choice`` is ``use``, ``off``, or ``ask``, which prompts the user about an agent that is
    ``is_for_project``: it has tools or comes from a file.
    """
    if choice not in ("ask", "use", "off"):
        reason = f"must be ask, use or off, not {choice!r:.60}"
        raise InvalidOptionError(option="--project-instructions", reason=reason)
    if choice == "off" or (choice == "ask" and not is_for_project):
        return None
    return InstructionFiles(Path() if root is None else root, is_agreed=choice == "use")


def _read(path: Path, boundary: Path, *, is_of_user: bool) -> InstructionFile:
    from kantan_agents.tools.mcp.configuration.entry import ServerSource  # slow import

    try:
        text, reason = text_of(path, boundary), ""
    except ProjectInstructionsError as error:
        text, reason = "", error.reason
    digest = hashlib.sha256(text.encode()).hexdigest()
    # A link in the user's directory to a file elsewhere is not the user's own.
    source = ServerSource(Path(os.path.realpath(path)), digest, is_of_user and is_own_file(path))
    return InstructionFile(path, is_of_user, text, source, reason or ("" if text else "it is empty"))


def _beginning(lines: Iterable[str], file: InstructionFile) -> Iterator[str]:
    left = _MOST_CHARACTERS
    for number, line in enumerate(lines):
        if number < _MOST_LINES:
            yield f"  {line[:left]}"
        if number == _MOST_LINES or len(line) > left:
            yield f"  ... ({file.extent}; the rest is in {file.name})"
            return
        left -= len(line)
