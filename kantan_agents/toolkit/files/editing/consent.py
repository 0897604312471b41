"""Whether a call may change a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from threading import Lock
from typing import Any, Literal
from uuid import uuid4

import anyio.to_thread
import attrs
from cachetools import LRUCache

from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import EditRejectedError, FileChangedError, KantanAgentsError, ProtectedPathError
from kantan_agents.toolkit.files.editing.folders import parts_of_file
from kantan_agents.toolkit.files.known_files import KnownFiles, state_of
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import Parts, open_folder, opened_root
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.protected import why_protected

ProtectedChoice = Literal["ask", "refuse", "allow"]

_State = tuple[int, ...] | None  # None: the file does not exist
_MOST_ASKED = 4096
# No call has this id, so only an approval of every call of a tool covers it.
_NO_CALL = f"no-call-{uuid4().hex}"


class Consent:
    """Decides about calls of the tools that change files, and records the questions to a person.

    Without ``known``, files need not be read first.
    """

    def __init__(
        self, root: Root, *, approval: bool, protected: ProtectedChoice, known: KnownFiles | None = None
    ) -> None:
        self._known = known
        self._root = root
        self._approval = approval
        self._protected = protected
        # Each with the run of the question.
        self._asked: LRUCache[tuple[str, Parts], tuple[_State, str | None]] = LRUCache(_MOST_ASKED)
        self._refused: set[tuple[str, Parts]] = set()
        self._lock = Lock()

    @property
    def needs_approval(self) -> bool | Callable[[Any, dict[str, Any], str], Awaitable[bool]]:
        """The SDK's option."""
        return self._asks if self._approval or self._protected == "ask" else False

    def of_call(self, context: Any, tool: str) -> CallConsent:
        """Return the consent to one call."""
        return CallConsent(
            self, str(getattr(context, "tool_call_id", "")), _is_always_approved(context, tool)
        )

    async def _asks(self, _context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        run = current_run.get()
        ask = partial(self._ask, arguments.get("file_path"), call_id, None if run is None else run.id)
        return await anyio.to_thread.run_sync(ask)

    def _ask(self, path: Any, call_id: str, run_id: str | None) -> bool:
        try:
            parts = parts_of_file(self._root, path if isinstance(path, str) else "")
        except KantanAgentsError:
            return self._approval  # the call fails anyway
        state = self._state(parts)
        is_refused = self._unknown(parts, state) is not None
        if self._protected != "allow" and why_protected(self._root.path, parts) is not None:
            is_refused = is_refused or self._protected == "refuse"
        elif not self._approval:
            return False
        with self._lock:
            if is_refused and len(self._refused) < _MOST_ASKED:
                # No person needs to decide. It stays rejected, even if the path changes before the call.
                self._refused.add((call_id, parts))
                return False
            self._asked[call_id, parts] = state, run_id
        return True

    def check(self, parts: Parts, *, always: bool) -> None:
        """Raise E202 for a protected path that no person approved. Blocks."""
        why = None if self._protected == "allow" else why_protected(self._root.path, parts)
        if why is not None and self._protected == "refuse":
            hint = "a person can change it, or a toolkit with protected='ask' or 'allow'"
            raise ProtectedPathError(path=shown_path(parts), reason=why, hint=hint)
        if why is not None and always:
            hint = "an approval of every call of the tool does not cover it; it has to be approved by itself"
            raise ProtectedPathError(path=shown_path(parts), reason=why, hint=hint)
        _end_writers(os.path.join(self._root.path, *parts))  # noqa: PTH118 - names that are not text

    def _unknown(self, parts: Parts, state: _State) -> KantanAgentsError | None:
        if self._known is None or state is None:
            return None
        known = self._known.state(parts)
        if known is None:
            reason = "it was not read yet: read it first, so that nothing in it is lost"
            return EditRejectedError(path=shown_path(parts), reason=reason)
        return None if known == state else FileChangedError(path=shown_path(parts))

    def check_state(self, call_id: str, parts: Parts, before: os.stat_result | None, *, always: bool) -> None:
        """Raise E162 for an unread file, E163 if it has changed since the read or the question."""
        unknown = self._unknown(parts, _state(before))
        if unknown is not None:
            raise unknown
        with self._lock:
            is_refused = not always and (call_id, parts) in self._refused
            asked = None if always else self._asked.get((call_id, parts))
        if is_refused or (asked is not None and asked[0] != _state(before)):
            raise FileChangedError(path=shown_path(parts))

    def note_written(self, call_id: str, parts: Parts, before: os.stat_result | None, folder: int) -> None:
        """Record a change, so that other approved calls of the same turn stay valid."""
        try:
            found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except OSError:
            return
        if self._known is not None:
            self._known.note(parts, found)
        after = _state(found)
        with self._lock:
            asked = self._asked.get((call_id, parts))
            if asked is None:
                return
            for key, (state, run_id) in list(self._asked.items()):
                if key[1] == parts and state == _state(before) and run_id == asked[1]:
                    self._asked[key] = after, run_id

    def _state(self, parts: Parts) -> _State:
        try:
            with opened_root(self._root) as top:
                folder = open_folder(self._root, top, parts[:-1])
                try:
                    return _state(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False))
                finally:
                    os.close(folder)
        except (OSError, KantanAgentsError):
            return None


@attrs.frozen(eq=False)
class CallConsent:
    """The consent to one call. If ``always``, no person has seen this one."""

    consent: Consent
    call_id: str
    always: bool

    def check(self, parts: Parts) -> None:
        """Raise E202 for a protected path that no person approved."""
        self.consent.check(parts, always=self.always)

    def check_state(self, parts: Parts, before: os.stat_result | None) -> None:
        """Raise E162 or E163."""
        self.consent.check_state(self.call_id, parts, before, always=self.always)

    def note_written(self, parts: Parts, before: os.stat_result | None, folder: int) -> None:
        """Record the change of this call."""
        self.consent.note_written(self.call_id, parts, before, folder)


def _end_writers(path: str) -> None:
    if "kantan_agents.toolkit.shell.supervised" in sys.modules:  # else no command has ever been started
        from kantan_agents.toolkit.shell.supervised import end_writers

        end_writers(path)


def _is_always_approved(context: Any, tool: str) -> bool:
    ask = getattr(context, "is_tool_approved", None)
    given, namespace = getattr(context, "tool_name", tool), getattr(context, "tool_namespace", None)
    names = {tool, given, f"{namespace}.{given}"}  # any name that the agent may use
    return ask is not None and any(ask(name, _NO_CALL) is True for name in names)


def _state(found: os.stat_result | None) -> _State:
    return None if found is None else state_of(found)
