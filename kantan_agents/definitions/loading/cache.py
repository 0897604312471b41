"""Agent files as they were read last, and whether that still holds."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import attrs
from cachetools import LRUCache

from kantan_agents.definitions.definition import AgentDefinition
from kantan_agents.definitions.frontmatter.document import MAX_BYTES
from kantan_agents.definitions.frontmatter.regular_file import read_regular_file
from kantan_agents.definitions.loading.file_problems import file_problem, problems_of
from kantan_agents.definitions.loading.signature import Signature, clock_ns, is_racy, seen_at, signature_of
from kantan_agents.definitions.problems import Problem
from kantan_agents.errors import AgentFileError, InvalidDefinitionError

# One byte more than a file may have: enough to see that it has too many.
_LIMIT = MAX_BYTES + 1


@attrs.frozen(eq=False)
class Reading:
    """What reading a file gave: a definition, or the errors that stand in its way."""

    definition: AgentDefinition | None = None
    errors: tuple[Problem, ...] = ()


@attrs.frozen(eq=False)
class _Kept:
    reading: Reading
    signature: Signature
    settled: bool
    digest: bytes


class FileCache:
    """Keeps the last readings of so many files; safe from any number of threads.

    A reading holds as long as the file has the same signature, unless the file was so new when it was read
    that a later change could have left the signature as it is: then it is read again. A file that holds the
    same bytes again gives the very same reading.

    Args:
        size: How many files are kept, those used last; with 0 every file is read each time.
    """

    def __init__(self, size: int) -> None:
        self._kept: LRUCache[str, _Kept] = LRUCache(max(size, 1))
        self._keeps = size > 0
        # Held for a look into the cache only, never while a file is read.
        self._lock = threading.Lock()

    def current(self, path: str) -> Reading | None:
        """Return the reading of an unchanged file, None where it must be read. It costs a ``stat``."""
        kept = self._of(path)
        if kept is None or not kept.settled or seen_at(path) != kept.signature:
            return None
        return kept.reading

    def read(self, path: str) -> Reading | None:
        """Return the reading of a file, from the cache if it holds; None if the file has vanished."""
        known = self.current(path)
        if known is not None:
            return known
        now = clock_ns()
        try:
            data, status = read_regular_file(path, _LIMIT)
        except (FileNotFoundError, NotADirectoryError):
            self._forget(path)
            return _leading_nowhere(path)
        except (OSError, ValueError) as error:
            # Not kept: what a file's neighbours and its mount let us do does not show in its signature.
            self._forget(path)
            reason = error.strerror if isinstance(error, OSError) else None
            return Reading(errors=(file_problem(path, reason or str(error)),))
        digest = hashlib.blake2b(data).digest()
        kept = self._of(path)
        same = kept is not None and kept.digest == digest
        reading = kept.reading if kept is not None and same else _parsed(path, data)
        signature = signature_of(status)
        if self._keeps and len(data) == min(status.st_size, _LIMIT):
            with self._lock:
                self._kept[path] = _Kept(reading, signature, not is_racy(signature, now), digest)
        return reading

    def _of(self, path: str) -> _Kept | None:
        with self._lock:
            kept: _Kept | None = self._kept.get(path)
            return kept

    def _forget(self, path: str) -> None:
        with self._lock:
            self._kept.pop(path, None)


def _parsed(path: str, data: bytes) -> Reading:
    try:
        return Reading(AgentDefinition.loads(data, path=Path(path)))
    except (AgentFileError, InvalidDefinitionError) as error:
        return Reading(errors=problems_of(path, error))


def _leading_nowhere(path: str) -> Reading | None:
    if os.path.islink(path):  # noqa: PTH114 - the paths of a scan are texts
        return Reading(errors=(file_problem(path, "the link leads to nothing"),))
    return None
