"""``SearchJournal``: the results of a search, so that they are paid for once.

GEPA can save its state, but as a pickle, and loading a pickle runs code. A search is deterministic instead:
started again, it repeats its steps, and the journal answers them.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import anyio
import attrs
import msgspec
from anyio.to_thread import run_sync

from kantan_agents.errors import WorkingFolderError
from kantan_agents.lab.improve.rated import Rated
from kantan_agents.lab.replay.cohort import Skipped
from kantan_agents.support.private_files import open_private

_FORMAT: Final = "kantan_agents improve"
_VERSION: Final = 1
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_APPEND: Final = os.O_WRONLY | os.O_APPEND | _NO_LINK
_READ: Final = os.O_RDONLY | _NO_LINK
_CHANGE: Final = os.O_RDWR | _NO_LINK
_BEGINNING: Final = b'{"cases": {'
"""The prefix of a journal's first line, as its keys are sorted."""
_MANY: Final = 3
_ANYTHING_ELSE: Final = "choose another folder with out=, or delete this one"

_writing = threading.Lock()


class SearchJournal:
    """The journal of a working folder.

    ``id`` is unique, even among journals of the same search. ``lost`` has tokens and cost of runs without a
    result.
    """

    def __init__(self, path: Path, id: str, *, is_new: bool) -> None:
        self.withholds = False
        self.path = path
        self.id = id
        self.is_new = is_new
        self.rated: dict[tuple[str, str], Rated] = {}
        self.proposals: dict[int, Mapping[str, Any]] = {}
        self.lost: list[tuple[int, float | None]] = []
        self.files: set[tuple[str, str]] = set()
        self.names: dict[str, str] = {}

    @property
    def lacks_scores(self) -> bool:
        """Whether three runs or more, and over half of them, have no score."""
        judged = [one for one in self.rated.values() if one.error is None and not one.refused]
        without = sum(one.unscored is not None for one in judged)
        return without >= _MANY and 2 * without > len(judged)

    def forget_failures(self) -> None:
        """Forget failures, so that models are called again."""
        if all(one.get("text") is None for one in self.proposals.values()):
            self.proposals = {}
        if self.lacks_scores:
            self.rated = {key: one for key, one in self.rated.items() if one.unscored is None}

    async def add_rated(self, version: str, rated: Rated) -> None:
        """Store a score."""
        kept = rated.withheld() if self.withholds else rated
        await self._append({"rated": kept.to_dict(), "version": version})
        self.rated[version, rated.case_id] = rated

    async def add_proposal(self, number: int, proposal: Mapping[str, Any]) -> None:
        """Store a reply of the reflection model."""
        await self._append({"proposal": dict(proposal), "number": number})
        self.proposals[number] = proposal

    async def add_lost(self, tokens: int, cost: float | None) -> None:
        """Store the usage of runs without a result."""
        await self._append({"lost": [tokens, cost]})
        self.lost.append((tokens, cost))

    async def add_files(self, files: Mapping[str, str]) -> None:
        """Store the hashes of result files before they are written."""
        await self._append({"files": dict(files)})
        self.files |= set(files.items())

    async def add_name(self, hashed: str, name: str) -> None:
        """Store the name of a version: once in use, its number is taken."""
        await self._append({"name": name, "of": hashed})
        self.names[hashed] = name

    async def _append(self, data: Mapping[str, Any]) -> None:
        with anyio.CancelScope(shield=True):  # it has cost something, so it is stored
            await run_sync(_append, self.path, data)

    def _read(self, data: Mapping[str, Any]) -> None:
        if "rated" in data:
            rated = Rated.from_dict(data["rated"])
            key = str(data["version"]), rated.case_id
            if (before := self.rated.get(key)) is not None:  # called again, and paid for twice
                self.lost.append((before.judge_tokens, before.judge_cost))
            self.rated[key] = rated
        elif "proposal" in data:
            number = int(data["number"])
            if (asked := self.proposals.get(number)) is not None:
                self.lost.append((int(asked["tokens"]), asked["cost"]))
            self.proposals[number] = dict(data["proposal"])
        elif "lost" in data:
            tokens, cost = data["lost"]
            self.lost.append((int(tokens), None if cost is None else float(cost)))
        elif "name" in data:
            self.names[str(data["of"])] = str(data["name"])
        else:
            self.files |= {(str(name), str(hashed)) for name, hashed in data["files"].items()}


@attrs.frozen
class BegunSearch:
    """The cases with their traces, and skipped traces, of an earlier start."""

    id: str
    cases: Mapping[str, str]
    skipped: tuple[Skipped, ...] = ()


def read_beginning(path: Path, key: str) -> BegunSearch | None:
    """Return the start of the same search; None if it is the first. Raises E123 for another journal.

    Later starts use the same cases, although others may match the filters by then.
    """
    lines = _lines(path)
    if not lines:
        return None
    head = lines[0]
    if head.get("format") != _FORMAT or head.get("format_version") != _VERSION:
        raise WorkingFolderError(
            path=str(path), reason=f"it is not a journal of this version; {_ANYTHING_ELSE}"
        )
    if head.get("key") != key:
        reason = f"it belongs to a search with other arguments, prompt, agent or judge; {_ANYTHING_ELSE}"
        raise WorkingFolderError(path=str(path), reason=reason)
    try:
        cases = {str(case): str(trace) for case, trace in head["cases"].items()}
        skipped = tuple(Skipped(str(trace), str(reason)) for trace, reason in head["skipped"])
        return BegunSearch(str(head["id"]), cases, skipped)
    except (AttributeError, KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise WorkingFolderError(path=str(path), reason=f"line 1 is damaged; {_ANYTHING_ELSE}") from error


def open_journal(
    path: Path, key: str, cases: Mapping[str, str], skipped: Sequence[Skipped] = ()
) -> SearchJournal:
    """Open or create the journal of a search; raise E123 for another one."""
    known = read_beginning(path, key)
    journal = SearchJournal(path, token_hex(16) if known is None else known.id, is_new=known is None)
    _drop_torn_line(path)
    if known is None:
        head = {"format": _FORMAT, "format_version": _VERSION, "key": key, "cases": dict(cases)}
        left_out = [[one.trace_id, one.reason] for one in skipped]
        _append(path, {**head, "id": journal.id, "skipped": left_out})
        return journal
    missing = [case for case in known.cases if case not in cases]
    if missing:
        reason = (
            f"{len(missing)} recorded runs of this search are not in the database now, such as {missing[0]}"
        )
        raise WorkingFolderError(path=str(path), reason=f"{reason}; {_ANYTHING_ELSE}")
    number = 1
    try:
        for number, data in enumerate(_lines(path)[1:], start=2):  # noqa: B007 - for the error
            journal._read(data)
    except (KeyError, TypeError, ValueError, AttributeError, msgspec.ValidationError) as error:
        if isinstance(error, WorkingFolderError):
            raise
        reason = f"line {number} is damaged ({type(error).__name__}); {_ANYTHING_ELSE}"
        raise WorkingFolderError(path=str(path), reason=reason) from error
    return journal


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a journal, without a last line that a killed process has not finished."""
    content = _content(path)
    if content and b"\n" not in content and not content.startswith(_BEGINNING):
        raise WorkingFolderError(path=str(path), reason=f"it is not a journal; {_ANYTHING_ELSE}")
    whole = content[: content.rfind(b"\n") + 1]
    found: list[dict[str, Any]] = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = f"line {number} is not JSON; {_ANYTHING_ELSE}"
            raise WorkingFolderError(path=str(path), reason=reason) from error
        if not isinstance(data, dict):
            raise WorkingFolderError(path=str(path), reason=f"line {number} is damaged; {_ANYTHING_ELSE}")
        found.append(data)
    return found


def _content(path: Path) -> bytes:
    try:
        # Never through a link that someone else has put there.
        with open(os.open(path, _READ), "rb") as file:  # noqa: PTH123 - of a descriptor
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise WorkingFolderError(path=str(path), reason=error.strerror or str(error)) from error


def _drop_torn_line(path: Path) -> None:
    """Cut off a line that a killed process has not finished."""
    content = _content(path)
    end = content.rfind(b"\n") + 1
    if end == len(content):
        return
    try:
        with open(os.open(path, _CHANGE), "r+b") as file:  # noqa: PTH123 - of a descriptor
            file.truncate(end)
    except OSError as error:
        raise WorkingFolderError(path=str(path), reason=error.strerror or str(error)) from error


def _append(path: Path, data: Mapping[str, Any]) -> None:
    line = json.dumps(data, ensure_ascii=True, sort_keys=True, default=str) + "\n"
    try:
        # For its owner only, and never through a link that someone else has put there.
        with _writing, open(open_private(path, _APPEND), "ab") as file:  # noqa: PTH123 - with a mode
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise WorkingFolderError(path=str(path), reason=error.strerror or str(error)) from error
