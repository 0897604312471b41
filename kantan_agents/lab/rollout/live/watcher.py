"""The threads that keep the rollouts of a database up to date, and check their guards."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock, Thread, current_thread
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.lab.rollout.live.check import Checker, check_quietly
from kantan_agents.lab.rollout.live.notify import notify
from kantan_agents.lab.rollout.live.shared import Shared
from kantan_agents.lab.rollout.state.lease import take_check
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.rollout")

POLL_SECONDS: Final = 0.5
_CHECK_SECONDS: Final = 1.0
_PART: Final = 20
"""A check may take one part in so many of the time."""
_EXIT_SECONDS: Final = 1.0


class Watcher:
    """Watches the rollouts in one database, until no agent uses any of them.

    One thread only reads their states, so that nothing delays a stop. Another one checks the guards, and
    calls handlers and callbacks of the application, which may take their time.

    Args:
        path: The trace database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shared: WeakSet[Shared] = WeakSet()
        self._checkers: WeakKeyDictionary[Shared, Checker] = WeakKeyDictionary()
        self._next_checks: WeakKeyDictionary[Shared, float] = WeakKeyDictionary()
        self._seen: WeakKeyDictionary[Shared, int] = WeakKeyDictionary()
        self._owner = token_hex(8)
        self._ending = Event()
        name = "kantan-agents-rollouts"
        self._reader = Thread(target=self._read, name=name, daemon=True)
        self._worker = Thread(target=self._work, name=f"{name}-checks", daemon=True)

    def add(self, shared: Shared) -> None:
        """Watch one more rollout."""
        self._seen[shared] = 0 if shared.state is None else shared.state.revision
        self._shared.add(shared)

    @property
    def rollouts(self) -> list[Shared]:
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
        """End the threads; one that is in a handler of the application ends after it."""
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

    def _quietly(self, shared: Shared, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the thread must go on
            _log.error("rollout not watched", rollout=shared.name, error=repr(error))

    def _check(self, shared: Shared) -> None:
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
        """Return whether this process is the one that checks the rollout now."""
        try:
            return take_check(self._path, name, self._owner)
        except TraceDatabaseError as error:
            _log.error("rollout not checked", rollout=name, error=str(error))
            return False

    def _notify(self, shared: Shared) -> None:
        state, seen = shared.state, self._seen.get(shared, 0)
        if state is not None and state.revision != seen:
            self._seen[shared] = state.revision
            if seen:  # else it could not be read before, and its changes are old
                notify(shared, self._path, since=seen)


class _Process:
    """The watchers of this process, by path."""

    lock = Lock()
    watchers: dict[Path, Watcher] = {}  # noqa: RUF012 - of the process, not of an object
    has_hooks = False


def watch(shared: Shared) -> None:
    """Keep a rollout up to date as long as an agent uses it."""
    path = shared.path
    if path is None:
        return
    with _Process.lock:
        if not _Process.has_hooks:
            _Process.has_hooks = True
            atexit.register(_stop_all)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_after_fork)
        watcher = _Process.watchers.get(path)
        if watcher is not None:
            watcher.add(shared)
            return
        _start(path, [shared])


def _start(path: Path, rollouts: Iterable[Shared]) -> None:
    watcher = _Process.watchers[path] = Watcher(path)
    for shared in rollouts:
        watcher.add(shared)
    try:
        watcher.start()
    except RuntimeError as error:  # no more threads, or the interpreter is shutting down
        _Process.watchers.pop(path, None)
        _log.error("rollouts not watched", path=str(path), error=str(error))


def _forget(path: Path, watcher: Watcher) -> bool:
    """Remove a watcher that has nothing to watch; return whether it still has nothing."""
    with _Process.lock:
        if watcher.rollouts:
            return False
        if _Process.watchers.get(path) is watcher:
            del _Process.watchers[path]
        return True


def _stop_all() -> None:
    with _Process.lock:
        watchers = list(_Process.watchers.values())
        _Process.watchers.clear()
    for watcher in watchers:
        watcher.stop()


def _after_fork() -> None:
    """Watch again in a forked child, which has no threads of its parent."""
    _Process.lock = Lock()
    old, _Process.watchers = _Process.watchers, {}
    for path, watcher in old.items():
        _start(path, watcher.rollouts)
