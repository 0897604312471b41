"""Agent files as the commands take them: named ones, and those of directories, read one by one."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from kantan_agents.definitions import AgentDefinition, AgentDirectory, AgentLoader, Problem
from kantan_agents.definitions.frontmatter.document import MAX_BYTES, read_regular_file
from kantan_agents.definitions.frontmatter.keys import field_of
from kantan_agents.definitions.loading.scan import list_files
from kantan_agents.definitions.problems import problems_of, unreadable
from kantan_agents.errors import AgentFileError, FileArgumentError, InvalidDefinitionError

_LINE_END = re.compile(r"\r\n|\n|\r")


@attrs.frozen(eq=False)
class AgentFile:
    """A file, as it was when it was read.

    Attributes:
        path: The file.
        tree: The directory it was found below.
        data: Its bytes.
        definition: What it says; None where that cannot be loaded.
        errors: Why it cannot be loaded.
    """

    path: Path
    tree: Path
    data: bytes = b""
    definition: AgentDefinition | None = None
    errors: tuple[Problem, ...] = ()

    def line_of(self, *fields: str) -> int:
        """Return the line that says one of some fields, 1 where none does."""
        lines = _LINE_END.split(self.data.decode("utf-8", "replace"))
        keys = (field_of(line.partition(":")[0].strip()) for line in lines)
        return next((number for number, field in enumerate(keys, start=1) if field in fields), 1)


@attrs.frozen
class Found:
    """Where agent files are.

    Attributes:
        files: Paths, each with the directory it was found below.
        problems: Directories that cannot be read.
        directories: The directories that were searched.
    """

    files: Sequence[tuple[Path, Path]]
    problems: Sequence[Problem]
    directories: Sequence[Path]


def find_files(paths: Sequence[Path]) -> Found:
    """Find the files that ``paths`` name, those of the usual directories if there are no paths.

    Raises:
        FileArgumentError: E79, a path is not there.
    """
    if paths:
        directories = [path for path in paths if stat.S_ISDIR(_status(path).st_mode)]
    else:
        paths = directories = [directory.path for directory in AgentLoader().directories]
    files: dict[str, tuple[Path, Path]] = {}
    problems: dict[Problem, None] = {}
    for path in paths:
        if path not in directories:
            found = [(path, path.parent)]
        else:
            listing = list_files([AgentDirectory(path, "given")])
            problems.update(dict.fromkeys(listing.problems))
            found = [(Path(file.path), path) for file in listing.files]
        for file, tree in found:
            files.setdefault(os.path.abspath(file), (file, tree))  # noqa: PTH100 - a link is not followed
    return Found(list(files.values()), list(problems), directories)


def read_files(files: Iterable[tuple[Path, Path]]) -> Iterator[AgentFile]:
    """Read files one after another; those that have vanished meanwhile are left out."""
    for path, tree in files:
        file = _read(path, tree)
        if file is not None:
            yield file


def _read(path: Path, tree: Path) -> AgentFile | None:
    try:
        data, _ = read_regular_file(str(path), MAX_BYTES + 1)
    except FileNotFoundError:
        if path.is_symlink():
            return AgentFile(path, tree, errors=(unreadable(str(path), "the link leads to nothing"),))
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return AgentFile(path, tree, errors=(unreadable(str(path), reason),))
    try:
        return AgentFile(path, tree, data, AgentDefinition.loads(data, path=path))
    except (AgentFileError, InvalidDefinitionError) as error:
        return AgentFile(path, tree, data, errors=problems_of(str(path), error))


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=str(path), reason=reason) from error
