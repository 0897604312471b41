"""Caches parsed files."""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import attrs
from cachetools import LRUCache

from kantan_agents.errors import AgentFileError
from kantan_agents.subagent_files.frontmatter.document import MAX_BYTES, read_regular_file
from kantan_agents.subagent_files.loading.scan import (
    Signature,
    clock_ns,
    is_racy,
    signature_at,
    signature_of,
)
from kantan_agents.subagent_files.problems import Problem, unreadable

# One extra byte detects a file that is too large.
_LIMIT = MAX_BYTES + 1

Reader = Callable[[str, int], tuple[bytes, os.stat_result]]
"""Returns up to this many bytes of a file, and its status; raises OSError or ValueError."""

T = TypeVar("T")


@attrs.frozen(eq=False)
class FileResult(Generic[T]):
    """The value of a file, or the problems that prevent one."""

    value: T | None = None
    errors: tuple[Problem, ...] = ()


@attrs.frozen(eq=False)
class _CacheEntry(Generic[T]):
    result: FileResult[T]
    signature: Signature
    settled: bool
    digest: bytes


class ParsedFiles(Generic[T]):
    """Caches the results of the most recently used files; thread-safe.

    A file so new that a later change could leave its signature the same is read again. The same bytes give
    the same result object. With ``size`` None, ``keep_only`` bounds the cache.
    """

    def __init__(
        self,
        parse: Callable[[str, bytes], FileResult[T]],
        size: int | None,
        *,
        read: Reader | None = None,
        unreadable_code: str = AgentFileError.code,
    ) -> None:
        self._parse = parse
        self._read = read
        self._unreadable_code = unreadable_code
        self._entries: LRUCache[str, _CacheEntry[T]] = LRUCache(math.inf if size is None else max(size, 1))
        self._is_enabled = size is None or size > 0
        # Never held while a file is read.
        self._lock = threading.Lock()

    def current(self, path: str) -> FileResult[T] | None:
        """Return the result of an unchanged file, or None; one ``stat``."""
        entry = self._get(path)
        if entry is None or not entry.settled or signature_at(path) != entry.signature:
            return None
        return entry.result

    def read(self, path: str) -> FileResult[T] | None:
        """Return the result of a file; None if the file does not exist."""
        current = self.current(path)
        if current is not None:
            return current
        now = clock_ns()
        try:
            data, status = (self._read or read_regular_file)(path, _LIMIT)
        except (OSError, ValueError) as error:
            # Not cached: changed permissions of parents and mounts do not change the file's signature.
            self._remove(path)
            problem = problem_of_reading(path, error, self._unreadable_code)
            return None if problem is None else FileResult(errors=(problem,))
        digest = hashlib.blake2b(data).digest()
        entry = self._get(path)
        is_same = entry is not None and entry.digest == digest
        result = entry.result if entry is not None and is_same else self._parse(path, data)
        signature = signature_of(status)
        if self._is_enabled and len(data) == min(status.st_size, _LIMIT):
            with self._lock:
                self._entries[path] = _CacheEntry(result, signature, not is_racy(signature, now), digest)
        return result

    def keep_only(self, paths: Iterable[str]) -> None:
        """Forget all files except ``paths``."""
        kept = frozenset(paths)
        with self._lock:
            for path in [path for path in self._entries if path not in kept]:
                del self._entries[path]

    def _get(self, path: str) -> _CacheEntry[T] | None:
        with self._lock:
            entry: _CacheEntry[T] | None = self._entries.get(path)
            return entry

    def _remove(self, path: str) -> None:
        with self._lock:
            self._entries.pop(path, None)


def problem_of_reading(
    path: str, error: OSError | ValueError, code: str = AgentFileError.code
) -> Problem | None:
    """Return why a file cannot be read; None if it no longer exists."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        is_link = os.path.islink(path)  # noqa: PTH114 - scanned paths are str
        return unreadable(path, "the target of the link does not exist") if is_link else None
    return unreadable(path, getattr(error, "strerror", None) or str(error), code)
