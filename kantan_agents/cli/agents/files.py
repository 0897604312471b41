"""Finds and reads subagent files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from kantan_agents.errors import AgentFileError, FileArgumentError, InvalidDefinitionError
from kantan_agents.subagent_files import AgentDefinition, AgentDirectory, AgentLoader, Problem
from kantan_agents.subagent_files.frontmatter.document import MAX_BYTES, lacks_frontmatter, read_regular_file
from kantan_agents.subagent_files.frontmatter.keys import field_of
from kantan_agents.subagent_files.loading.cache import problem_of_reading
from kantan_agents.subagent_files.loading.scan import list_files
from kantan_agents.subagent_files.problems import no_agent, problems_of

_LINE_END = re.compile(r"\r\n|\n|\r")


@attrs.frozen(eq=False)
class AgentFile:
    """A file that was read. A Markdown file without frontmatter is an agent only if it was named."""

    path: Path
    tree: Path
    data: bytes = b""
    definition: AgentDefinition | None = None
    errors: tuple[Problem, ...] = ()
    is_agent: bool = True

    def line_of(self, key: str) -> int:
        """Return the first line with a key or its aliases, or 1."""
        field = field_of(key)
        lines = _LINE_END.split(self.data.decode("utf-8", "replace"))
        for number, line in enumerate(lines, start=1):
            found = line.partition(":")[0].strip().strip("\"'")
            if found == key or (field is not None and field_of(found) == field):
                return number
        return 1


@attrs.frozen
class FoundPath:
    """A path, found or named."""

    path: Path
    tree: Path
    is_named: bool = False


@attrs.frozen
class FoundFiles:
    """The subagent files, and unreadable directories."""

    files: Sequence[FoundPath]
    problems: Sequence[Problem]
    directories: Sequence[Path]


def find_files(paths: Sequence[Path]) -> FoundFiles:
    """Find the files at ``paths``, or in the default directories."""
    if paths:
        directories = [path for path in paths if stat.S_ISDIR(_status(path).st_mode)]
    else:
        paths = directories = [directory.path for directory in AgentLoader().directories]
    files: dict[str, FoundPath] = {}
    problems: dict[Problem, None] = {}
    for path in paths:
        if path not in directories:
            found = [FoundPath(path, path.parent, is_named=True)]
        else:
            listing = list_files([AgentDirectory(path, "given")])
            problems.update(dict.fromkeys(listing.problems))
            found = [FoundPath(Path(file.path), path) for file in listing.files]
        for file in found:
            key = os.path.abspath(file.path)  # noqa: PTH100 - a link is not followed
            files[key] = file if file.is_named else files.get(key, file)
    return FoundFiles(list(files.values()), list(problems), directories)


def read_files(files: Iterable[FoundPath]) -> Iterator[AgentFile]:
    """Yield the files; skip those that no longer exist."""
    for found in files:
        file = _read(found)
        if file is not None:
            yield file


def _read(found: FoundPath) -> AgentFile | None:
    path, tree = found.path, found.tree
    try:
        data, _ = read_regular_file(str(path), MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        problem = problem_of_reading(str(path), error)
        return None if problem is None else AgentFile(path, tree, errors=(problem,))
    try:
        return AgentFile(path, tree, data, AgentDefinition.loads(data, path=path))
    except (AgentFileError, InvalidDefinitionError) as error:
        if not found.is_named and lacks_frontmatter(data):
            return AgentFile(path, tree, data, errors=(no_agent(str(path)),), is_agent=False)
        return AgentFile(path, tree, data, errors=problems_of(str(path), error))


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=str(path), reason=reason) from error
