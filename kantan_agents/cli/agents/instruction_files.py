"""``InstructionFiles``: what ``AGENTS.md`` or ``CLAUDE.md`` of the user and of the project tell an agent."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import typer

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import count_text, counted, size_text
from kantan_agents.core.templating import render_template
from kantan_agents.errors import ProjectInstructionsError
from kantan_agents.support.invisible import by_code, without_invisible
from kantan_agents.tools.mcp.configuration.config_directory import config_directory
from kantan_agents.tools.mcp.configuration.entry import ServerSource
from kantan_agents.tools.mcp.configuration.places import is_own_file
from kantan_agents.tools.mcp.configuration.trust import TrustRecord
from kantan_agents.tools.skills.project import MAX_CHARS, NAMES, cut_to, nearest_file, text_of

_MOST_LINES: Final = 20
_MOST_CHARACTERS: Final = 2_000
_KEY: Final = "project_instructions"


@attrs.frozen
class InstructionFile:
    """A file of instructions as it was read.

    Attributes:
        path: The file.
        is_of_user: Whether it is in the user's own configuration directory.
        text: Its text; empty if it cannot be read.
        source: What trust in it is recorded for.
        reason: Why it is not used; empty if it is.
    """

    path: Path
    is_of_user: bool
    text: str
    source: ServerSource = attrs.field(eq=False)
    reason: str = attrs.field(default="", eq=False)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def extent(self) -> str:
        """Its size, with what a reader does not see of it, or why it is not used."""
        hidden = without_invisible(self.text)[1]
        parts = [
            size_text(len(self.text.encode())),
            f"{counted(hidden, 'invisible character')} in it" if hidden else "",
            f"only its first {count_text(MAX_CHARS)} characters" if len(self.text) > MAX_CHARS else "",
            f"left out: {self.reason}" if self.reason else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def section(self) -> str:
        """The text as the model gets it."""
        whose = "user" if self.is_of_user else "project"
        head = f"# {whose.capitalize()} instructions ({self.name})\n\nThis file of the {whose} says:"
        return f"{head}\n\n{cut_to(self.text, MAX_CHARS)}"


class InstructionFiles:
    """The files of instructions for one conversation, as they were when it began.

    Args:
        folder: The folder that the agent works in. Its nearest file is used, after the user's own.
        is_agreed: Whether the person has agreed to the file of the project, whatever it says.

    Attributes:
        files: The files; those that are not used have a reason.
    """

    def __init__(self, folder: Path, *, is_agreed: bool = False) -> None:
        self._folder = folder
        self.is_agreed = is_agreed
        self._is_settled = False
        self.files = self.read()
        self._unasked = () if is_agreed else self.files

    def read(self) -> tuple[InstructionFile, ...]:
        """Return the files as they are now."""
        own = config_directory()
        of_user = [] if own is None else [own / name for name in NAMES if os.path.lexists(own / name)]
        files = [_read(path, Path(os.path.realpath(path)).parent, is_of_user=True) for path in of_user[:1]]
        nearest = nearest_file(self._folder)
        if nearest is not None:
            files.append(_read(*nearest, is_of_user=False))
        found: dict[Path, InstructionFile] = {}
        for one in files:  # both are the same in the user's own directory
            found.setdefault(one.source.path, one)
        return tuple(found.values())

    def questions(self) -> dict[ServerSource, list[str]]:
        """Return what the person may have to agree to, with lines that show it; nothing the second time."""
        files, self._unasked = self._unasked, ()
        return {one.source: list(_shown(one)) for one in files if not one.reason}

    def options(self) -> dict[str, Any]:
        """Return the options of an agent that is told the texts of the files.

        The first time, the person is asked about those that are not trusted, and standard error says what is
        used. Subagents inherit the options.
        """
        if not self._is_settled:
            self._settle()
        if not self.text:
            return {}
        used = (f"{one.path} sha256:{one.source.digest}" for one in self.files if not one.reason)
        return {"renderer": partial(_render, self.text), "metadata": {_KEY: "; ".join(used)}}

    @property
    def text(self) -> str:
        """What an agent is told after its own instructions. It is never rendered as a template."""
        return "\n\n".join(one.section for one in self.files if not one.reason)

    def take(self, files: tuple[InstructionFile, ...]) -> None:
        """Use what the person was shown. What has not changed stays left out if it was."""
        known = {one: one for one in self.files}
        self.files = tuple(known.get(one, one) for one in files)

    def _settle(self) -> None:
        self._is_settled = True
        if not self.files:
            return
        from kantan_agents.cli.mcp.trust import ask_for_trust  # most folders have no such file

        ask_for_trust((), texts=self.questions())
        if not self.is_agreed:
            record = TrustRecord.of_user()
            self.files = tuple(_judged(one, record) for one in self.files)
        for one in self.files:
            whose = "your own" if one.is_of_user else "of this project"
            typer.echo(one_line(f"instructions {whose}: {one.path}, {one.extent}"), err=True)


def instruction_files(
    root: Path | None, choice: bool | None, *, is_for_project: bool
) -> InstructionFiles | None:
    """Return the files for an agent; None if it gets none.

    Args:
        root: The folder of its tools; None for the working folder.
        choice: Whether the person wants them; None if that was not said.
        is_for_project: Whether the agent works on a project: it has tools, or is from a file.
    """
    if choice is False or (choice is None and not is_for_project):
        return None
    return InstructionFiles(Path() if root is None else root, is_agreed=choice is True)


def _read(path: Path, boundary: Path, *, is_of_user: bool) -> InstructionFile:
    try:
        text, reason = text_of(path, boundary), ""
    except ProjectInstructionsError as error:
        text, reason = "", error.reason
    digest = hashlib.sha256(text.encode()).hexdigest()
    # A link in the user's directory to a file elsewhere is not the user's own.
    source = ServerSource(Path(os.path.realpath(path)), digest, is_of_user and is_own_file(path))
    return InstructionFile(path, is_of_user, text, source, reason or ("" if text else "it is empty"))


def _judged(file: InstructionFile, record: TrustRecord) -> InstructionFile:
    distrust = None if file.reason else record.distrust(file.source)
    hint = "--project-instructions uses it all the same"
    return file if distrust is None else attrs.evolve(file, reason=f"it {distrust}; {hint}")


def _shown(file: InstructionFile) -> Iterator[str]:
    """Yield the beginning of a text for the question, with its invisible characters by code."""
    text = by_code(file.text[: _MOST_CHARACTERS + 1], strict=True)
    lines = text[:_MOST_CHARACTERS].split("\n")
    yield from (f"  {line}" for line in lines[:_MOST_LINES])
    if len(text) > _MOST_CHARACTERS or len(lines) > _MOST_LINES:
        yield f"  ... ({file.extent}; the rest is in the file)"


def _render(added: str, text: str, context: dict[str, Any], allow_env: bool) -> str:
    return f"{render_template(text, context, allow_env).rstrip()}\n\n{added}"
