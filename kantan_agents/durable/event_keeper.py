"""Stores events of durable runs."""

from __future__ import annotations

import json
from collections import Counter
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any

import attrs

from kantan_agents.core.events import Event
from kantan_agents.core.interception import is_redacted, redacted_data
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.durable.execution import current_execution
from kantan_agents.durable.storage.events import Events
from kantan_agents.support.log import get_logger
from kantan_agents.support.secrets import mask, may_contain_secret
from kantan_agents.traces.recorder.masking import mask_data

_INTERVAL = 0.05
_MOST_WAITING = 50_000
_DELTAS = ("text_delta", "reasoning_delta", "tool_arguments_delta")
_WRITTEN = ("arguments", "message", "output", "text")
ENDS = ("run_finished", "run_failed", "run_cancelled")
WENT_ON = "went_on"
"""Event: another process resumes the run. Deltas since ``model_call_finished`` are sent again."""

_log = get_logger("kantan_agents.durable")


@attrs.define
class _Reel:
    attempt: int = 1
    waiting: list[Event] = attrs.field(factory=list)
    last: int | None = None
    known: frozenset[str] = frozenset()
    seen: Counter[str] = attrs.field(factory=Counter)
    is_over: bool = False


class EventKeeper:
    """Stores events in a separate thread."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._reels: dict[str, _Reel] = {}
        self._roots: dict[str, str] = {}
        self._lock = Lock()
        self._ends = Signal()
        self._thread: Thread | None = None
        self._dropped = 0

    def __call__(self, event: Event) -> None:
        """Receive an event. The run does not wait for its storage."""
        execution, run = current_execution.get(), current_run.get()
        if execution is not None and execution.is_lost:
            return  # another process has the run, where these happen again, or otherwise
        if run is not None and is_redacted(run):
            # `Redact(restore=True)` restores values for readers of the stream, not for the database.
            event = _redacted(event, run)
        with self._lock:
            root = self._root_of(event, None if execution is None else execution.root_id)
            reel = self._reels.setdefault(root, _Reel())
            if execution is not None:
                reel.attempt = execution.attempt
            if len(reel.waiting) >= _MOST_WAITING:
                self._dropped += 1
                return
            reel.waiting.append(event)
            if event.run_id == root and event.type in ENDS:
                reel.is_over = True

    def _root_of(self, event: Event, given: str | None) -> str:
        parent = self._roots.get(event.parent_run_id or "")
        root = given or self._roots.get(event.run_id) or parent or event.run_id
        if event.type in ENDS:
            self._roots.pop(event.run_id, None)
        else:
            self._roots[event.run_id] = root
        return root

    def start(self) -> None:
        """Start storing."""
        self._ends.clear()
        self._thread = Thread(target=self._store_in_intervals, name="kantan-agents-events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Store the waiting events, and stop."""
        self._ends.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(10.0)
            self.store()

    def _store_in_intervals(self) -> None:
        while not self._ends.wait(_INTERVAL):
            self.store()

    def store(self) -> None:
        """Store the waiting events; after a failure, they wait for the next time."""
        with self._lock:
            reels = {root: reel for root, reel in self._reels.items() if reel.waiting}
            dropped, self._dropped = self._dropped, 0
        if dropped:
            _log.warning("events of durable runs dropped: the database is too slow", events=dropped)
        for root, reel in reels.items():
            if not self._try_to_store(root, reel):
                return  # the next run would wait for the database as long

    def _try_to_store(self, root: str, reel: _Reel) -> bool:
        try:
            self._store(root, reel)
        except Exception as error:  # noqa: BLE001 - the run continues without them; they are tried again
            _log.warning("events not stored", run_id=root, error=str(error).split("\n", 1)[0])
            return not getattr(error, "is_away", False)
        return True

    def _store(self, root: str, reel: _Reel) -> None:
        rows: list[tuple[int, str | None, str]] = []
        last = reel.last
        if reel.last is None:
            reel.last, reel.known = self._events.known(root)
            if reel.attempt > 1:
                body = {"type": WENT_ON, "run_id": root, "attempt": reel.attempt}
                reel.last += 1
                rows.append((reel.last, f"{WENT_ON}/{reel.attempt}", json.dumps(body)))
        seen = reel.seen.copy()
        with self._lock:
            taken, reel.waiting = reel.waiting, []
        for event in taken:
            identity = _identity(event, reel)
            if identity in reel.known or _is_known_delta(event, reel):
                continue
            reel.last += 1
            rows.append((reel.last, identity, _masked(event.to_json())))
        try:
            self._events.add(root, rows)
        except BaseException:
            with self._lock:  # numbered again at the next attempt
                reel.waiting, reel.last, reel.seen = [*taken, *reel.waiting], last, seen
            raise
        with self._lock:
            if reel.is_over and not reel.waiting:
                self._reels.pop(root, None)


def _masked(body: str) -> str:
    """Mask an event's secrets field by field: masked as a whole, its JSON might break."""
    return json.dumps(mask_data(json.loads(body), mask)) if may_contain_secret(body) else body


def _redacted(event: Any, run: Run) -> Any:
    changed = {}
    for field in attrs.fields(type(event)):
        if field.init and field.name in _WRITTEN:
            value = getattr(event, field.name)
            redacted = redacted_data(run, value)
            if redacted != value:
                changed[field.name] = redacted
    return attrs.evolve(event, **changed) if changed else event


def _identity(event: Any, reel: _Reel) -> str | None:
    if event.type in _DELTAS:
        return None
    name = f"{event.type}/{event.run_id}/{getattr(event, 'call_id', '')}"
    reel.seen[name] += 1
    return f"{name}/{reel.seen[name]}"


def _is_known_delta(event: Any, reel: _Reel) -> bool:
    if event.type not in _DELTAS:
        return False
    ended = "tool_call_started" if event.type == "tool_arguments_delta" else "model_call_finished"
    return f"{ended}/{event.run_id}/{event.call_id}/1" in reel.known
