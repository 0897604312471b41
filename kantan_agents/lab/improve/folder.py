"""``Folder``: the working folder of a search."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from kantan_agents.errors import WorkingFolderError
from kantan_agents.support.private_files import open_private
from kantan_agents.support.replace_file import replace_file

JOURNAL: Final = "journal.jsonl"
FILES: Final[Mapping[str, str]] = {
    "prompt": "new-version.md",
    "diff": "prompt.diff",
    "lineage": "lineage.svg",
    "summary": "summary.json",
}
"""Fixed names of the result files: a name that a model wrote may be any path."""

_LOCK: Final = ".lock"
_UNSAFE: Final = re.compile(r"[^\w-]+", re.ASCII)
_LONGEST: Final = 60


def default_folder(prompt: str) -> Path:
    """Return the working folder in the current directory, safe for any name."""
    return Path(f"{_UNSAFE.sub('-', prompt).strip('-')[:_LONGEST] or 'prompt'}-improve")


@attrs.frozen
class Folder:
    """A working folder."""

    path: Path

    @property
    def journal(self) -> Path:
        """The path of the journal."""
        return self.path / JOURNAL

    def prepare(self) -> None:
        """Create the folder; raise E123 if that fails, or if it has other files."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            names = {one.name for one in self.path.iterdir()} - {_LOCK}
        except OSError as error:
            raise WorkingFolderError(path=str(self.path), reason=error.strerror or str(error)) from error
        if names and JOURNAL not in names:
            reason = f"it is not empty and has no {JOURNAL}; choose another folder"
            raise WorkingFolderError(path=str(self.path), reason=reason)

    def check_files(self, known: Collection[tuple[str, str]]) -> None:
        """Raise E123 if a result file is not ``known``, by name and hash, from an earlier start."""
        for name in FILES.values():
            place = self.path / name
            try:
                content = place.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise WorkingFolderError(path=str(place), reason=error.strerror or str(error)) from error
            if (name, _hash(content)) not in known:
                reason = "it exists and was not written by this search; move it, or choose another folder"
                raise WorkingFolderError(path=str(place), reason=reason)

    def places(self, names: Iterable[str]) -> Mapping[str, Path]:
        """Return the paths of result files, by kind."""
        return {what: self.path / FILES[what] for what in names}

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write result files by kind, and delete none; raise E123 on errors."""
        for what, content in contents.items():
            place = self.path / FILES[what]
            try:
                replace_file(place, content)
            except OSError as error:
                raise WorkingFolderError(path=str(place), reason=error.strerror or str(error)) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder; raise E123 if another process uses it."""
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        try:
            descriptor = open_private(self.path / _LOCK, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        except OSError as error:
            raise WorkingFolderError(path=str(self.path), reason=error.strerror or str(error)) from error
        with open(descriptor, "ab") as file:  # noqa: PTH123 - of a descriptor
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                reason = "another process uses it; wait for its end, or choose another folder"
                raise WorkingFolderError(path=str(self.path), reason=reason) from error
            yield


def hashes_of(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the hash of each result file by its name."""
    return {FILES[what]: _hash(content) for what, content in contents.items()}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
