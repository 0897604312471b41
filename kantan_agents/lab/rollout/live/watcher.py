"""Threads that follow the rollouts of a database."""

from __future__ import annotations

import atexit
import inspect
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock, Thread, current_thread
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import anyio

from kantan_agents.agent.running.portal import background_loop
from kantan_agents.core.events import Handler, RolloutChanged
from kantan_agents.core.events.observers import OnlyKinds, WithRawEvents, everywhere
from kantan_agents.errors import KantanAgentsError, TraceDatabaseError
from kantan_agents.lab.rollout.live.check import Checker, check_quietly
from kantan_agents.lab.rollout.live.shared_rollout import SharedRollout
from kantan_agents.lab.rollout.state.lease import take_check
from kantan_agents.lab.rollout.state.rows import RolloutChange, read_history
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.rollout")

POLL_SECONDS: Final = 0.5
_CHECK_SECONDS: Final = 1.0
_PART: Final = 20
"""A check may take one part in this many of the time."""
_EXIT_SECONDS: Final = 1.0
_HANDLER_SECONDS: Final = 30.0


class Watcher:
    """Watches the rollouts in one database, until no agent uses any of them.

    One thread only reads their states, so that slow guards, handlers and callbacks in another delay no stop.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shared: WeakSet[SharedRollout] = WeakSet()
        self._checkers: WeakKeyDictionary[SharedRollout, Checker] = WeakKeyDictionary()
        self._next_checks: WeakKeyDictionary[SharedRollout, float] = WeakKeyDictionary()
        self._seen: WeakKeyDictionary[SharedRollout, int] = WeakKeyDictionary()
        self._owner = token_hex(8)
        self._ending = Event()
        name = "kantan-agents-rollouts"
        self._reader = Thread(target=self._read, name=name, daemon=True)
        self._worker = Thread(target=self._work, name=f"{name}-checks", daemon=True)

    def add(self, shared: SharedRollout) -> None:
        """Watch one more rollout."""
        self._seen[shared] = 0 if shared.state is None else shared.state.revision
        self._shared.add(shared)

    @property
    def rollouts(self) -> list[SharedRollout]:
        """The watched rollouts that some agent uses."""
        return list(self._shared)

    @property
    def is_alive(self) -> bool:
        """Whether one of its threads is running."""
        return self._reader.is_alive() or self._worker.is_alive()

    def start(self) -> None:
        """Start the threads."""
        self._reader.start()
        self._worker.start()

    def stop(self) -> None:
        """End the threads; a thread in a handler of the application ends after it."""
        self._ending.set()
        for thread in (self._reader, self._worker):
            if thread.is_alive() and thread is not current_thread():
                thread.join(_EXIT_SECONDS)

    def _read(self) -> None:
        while not self._ending.wait(POLL_SECONDS):
            rollouts = self.rollouts
            for shared in rollouts:
                self._quietly(shared, shared.refresh)
            if not rollouts and _forget(self._path, self):
                self._ending.set()
            del rollouts  # or the last one would live on in this frame
            shared = None  # type: ignore[assignment]

    def _work(self) -> None:
        while not self._ending.wait(POLL_SECONDS):
            for shared in self.rollouts:
                self._quietly(shared, partial(self._notify, shared))
                self._quietly(shared, partial(self._check, shared))
                self._quietly(shared, partial(self._notify, shared))
            shared = None  # type: ignore[assignment]  # or it would live on in this frame

    def _quietly(self, shared: SharedRollout, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the thread must continue
            _log.error("rollout not watched", rollout=shared.name, error=repr(error))

    def _check(self, shared: SharedRollout) -> None:
        state, now = shared.state, time.monotonic()
        if state is None or state.status != "running" or now < self._next_checks.get(shared, 0.0):
            return
        if not self._has_check(shared.name):
            return
        checker = self._checkers.get(shared)
        if checker is None:
            checker = self._checkers[shared] = Checker(shared, self._path)
        check_quietly(checker, shared, partial(self._has_check, shared.name))
        took = time.monotonic() - now
        self._next_checks[shared] = time.monotonic() + max(_CHECK_SECONDS, took * _PART)

    def _has_check(self, name: str) -> bool:
        """Return whether this process checks the rollout now."""
        try:
            return take_check(self._path, name, self._owner)
        except TraceDatabaseError as error:
            _log.error("rollout not checked", rollout=name, error=str(error))
            return False

    def _notify(self, shared: SharedRollout) -> None:
        state, seen = shared.state, self._seen.get(shared, 0)
        if state is not None and state.revision != seen:
            self._seen[shared] = state.revision
            if seen:  # else it could not be read before, and its changes are old
                _notify(shared, self._path, since=seen)


class _Watchers:
    lock = Lock()
    watchers: dict[Path, Watcher] = {}  # noqa: RUF012 - of the process, not of an object
    has_hooks = False


def watch(shared: SharedRollout) -> None:
    """Update a rollout as long as an agent uses it."""
    path = shared.path
    if path is None:
        return
    with _Watchers.lock:
        if not _Watchers.has_hooks:
            _Watchers.has_hooks = True
            atexit.register(_stop_all)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_after_fork)
        watcher = _Watchers.watchers.get(path)
        if watcher is not None:
            watcher.add(shared)
            return
        _start(path, [shared])


def _start(path: Path, rollouts: Iterable[SharedRollout]) -> None:
    watcher = _Watchers.watchers[path] = Watcher(path)
    for shared in rollouts:
        watcher.add(shared)
    try:
        watcher.start()
    except RuntimeError as error:  # no more threads, or the interpreter is shutting down
        _Watchers.watchers.pop(path, None)
        _log.error("rollouts not watched", path=str(path), error=str(error))


def _forget(path: Path, watcher: Watcher) -> bool:
    """Remove an idle watcher; return whether it is still idle."""
    with _Watchers.lock:
        if watcher.rollouts:
            return False
        if _Watchers.watchers.get(path) is watcher:
            del _Watchers.watchers[path]
        return True


def _stop_all() -> None:
    with _Watchers.lock:
        watchers = list(_Watchers.watchers.values())
        _Watchers.watchers.clear()
    for watcher in watchers:
        watcher.stop()


def _after_fork() -> None:
    """A forked child has no threads of its parent."""
    _Watchers.lock = Lock()
    old, _Watchers.watchers = _Watchers.watchers, {}
    for path, watcher in old.items():
        _start(path, watcher.rollouts)


def _notify(shared: SharedRollout, path: Path, *, since: int) -> None:
    """Call handlers; async ones run on the library's background loop."""
    try:
        changes = read_history(path, shared.name)[since:]
    except KantanAgentsError as error:
        _log.error("changes of a rollout not read", rollout=shared.name, error=str(error))
        return
    for change in changes:
        event = _event(shared.plan.agent, change)
        for handler in _handlers(shared):
            _call(handler, event)


def _event(agent: str, change: RolloutChange) -> RolloutChanged:
    return RolloutChanged(
        run_id="",
        parent_run_id=None,
        agent=agent,
        sequence=0,
        time=change.at,
        rollout=change.rollout,
        action=change.action,
        share=change.share,
        arm=change.arm,
        author=change.author,
        reason=change.reason,
    )


def _handlers(shared: SharedRollout) -> list[Handler]:
    found: list[Handler] = []
    for handler in (*everywhere.handlers, *(one for own in list(shared.observers) for one in own.handlers)):
        plain = handler.handler if isinstance(handler, WithRawEvents) else handler
        if isinstance(plain, OnlyKinds) and RolloutChanged not in plain.kinds:
            continue
        if not any(plain == known for known in found):
            found.append(plain)
    return found


def _call(handler: Handler, event: RolloutChanged) -> None:
    try:
        returned: Any = handler(event)
        if inspect.isawaitable(returned):

            async def waited() -> None:
                with anyio.fail_after(_HANDLER_SECONDS):
                    await returned

            background_loop.run(waited)
    except Exception as error:  # noqa: BLE001 - code of the application
        _log.error("observer failed", event_type=event.type, rollout=event.rollout, error=repr(error))
