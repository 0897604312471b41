"""Shows live processes by locks that end with them, without clocks."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.errors import DurableDatabaseError
from kantan_agents.support.private_files import open_private

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


SILENT_SECONDS = 30.0


class Alive(Protocol):
    """The locks of a database's processes."""

    def hold(self, executor: str) -> None:
        """Show this process as alive, until ``release`` or its end."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...

    def keep(self) -> None:
        """Take the lock again, if it was lost."""
        ...

    def forget(self) -> None:
        """Reset a forked child, which must not show the parent as alive."""
        ...

    def ended(self, executors: list[str]) -> list[str]:
        """Return the other processes that have ended."""
        ...


def alive_in(database: RunDatabase, interval: float) -> Alive:
    """Return the locks of a database: files next to SQLite, or advisory locks in Postgres.

    In Postgres, a process that misses several calls of ``keep`` counts as ended.
    """
    if database.is_sqlite:
        return _Files(database)
    return _Advisory(database, max(SILENT_SECONDS, 3 * interval))


class _Files:
    """Locks files in a directory next to the database; the system unlocks them at a process's end."""

    def __init__(self, database: RunDatabase) -> None:
        from sqlalchemy import make_url

        path = make_url(database.url).database
        if not path or path == ":memory:":
            reason = "it is in memory, and durable runs have to outlive the process: name a file"
            raise DurableDatabaseError(database=database.shown, reason=reason)
        self._directory = Path(f"{path}.workers")
        self._shown = database.shown
        self._held: tuple[int, Path] | None = None

    def hold(self, executor: str) -> None:
        path = self._directory / executor
        try:
            self._directory.mkdir(mode=0o700, parents=False, exist_ok=True)
            descriptor = open_private(path, os.O_RDWR)
        except OSError as error:
            reason = f"the lock of this process cannot be made in {self._directory}: {error.strerror}"
            raise DurableDatabaseError(database=self._shown, reason=reason) from error
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held = (descriptor, path)

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            with suppress(OSError):
                held[1].unlink()
            os.close(held[0])

    def keep(self) -> None:
        """Do nothing: the system only takes the locks of ended processes."""

    def forget(self) -> None:
        """Close the file in a forked child; the parent still locks it."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held[0])

    def ended(self, executors: list[str]) -> list[str]:
        own = None if self._held is None else self._held[1].name
        return [one for one in executors if one != own and self._has_ended(one)]

    def _has_ended(self, executor: str) -> bool:
        if os.sep in executor or executor.startswith("."):
            return False  # not a name from this library
        path = self._directory / executor
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            if fcntl is None:
                return _can_delete(path)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        with suppress(OSError):
            path.unlink()
        return True


def _can_delete(path: Path) -> bool:
    """Return whether a file is closed: Windows cannot delete open ones."""
    try:
        path.unlink()
    except PermissionError:
        return False
    except FileNotFoundError:
        return True
    return True


class _Advisory:
    """Holds an advisory lock on a dedicated connection, which also ends it."""

    def __init__(self, database: RunDatabase, silence: float) -> None:
        self._database = database
        self._silence = silence
        self._connection: Any = None
        self._executor: str | None = None
        self._is_held = False
        self._lock = Lock()
        self._seen: set[str] = set()

    def hold(self, executor: str) -> None:
        """Take this process's lock, again if the server has closed the connection."""
        with self._lock:
            self._executor = executor
            self._take()

    def _take(self) -> None:
        try:
            if self._connection is None:
                self._connection = self._database.connect()
                # A machine without power sends no notice, so the server probes it.
                self._connection.exec_driver_sql("SET tcp_keepalives_idle = 5")
                self._connection.exec_driver_sql("SET tcp_keepalives_interval = 2")
                self._connection.exec_driver_sql("SET tcp_keepalives_count = 3")
                # A stalled process or connection is only noticed by its silence.
                self._connection.exec_driver_sql(f"SET idle_session_timeout = '{self._silence:.0f}s'")
                self._is_held = False
            # Another process may be looking, or the server may not have noticed an old connection's end.
            statement = f"SELECT pg_try_advisory_lock({_number(self._executor)})"
            found = self._connection.exec_driver_sql("SELECT 1" if self._is_held else statement).scalar()
            self._is_held = bool(found)
        except Exception:
            broken, self._connection = self._connection, None
            if broken is not None:
                with suppress(Exception):  # the server may be gone
                    broken.invalidate()
                    broken.close()
            raise

    def release(self) -> None:
        with self._lock:
            held, self._connection, self._executor = self._connection, None, None
        if held is not None:
            with suppress(Exception):  # the server may be gone
                held.invalidate()
                held.close()

    def keep(self) -> None:
        with self._lock:
            if self._executor is not None:
                self._take()

    def forget(self) -> None:
        """In a forked child: close the connection here, not in the parent."""
        held, self._connection, self._executor = self._connection, None, None
        self._lock = Lock()
        if held is not None:
            _forgotten.append(held)  # its destructor would end the session of the parent
            with suppress(Exception), open(os.devnull, "rb") as null:  # noqa: PTH123
                os.dup2(null.fileno(), held.connection.driver_connection.fileno())

    def ended(self, executors: list[str]) -> list[str]:
        """Return the processes whose lock was free twice: one may be reconnecting."""
        from sqlalchemy import text

        self.keep()
        free: set[str] = set()
        with self._database.read() as connection:
            for one in executors:
                if one == self._executor:
                    continue
                # Held for the length of this transaction only.
                is_free = connection.execute(
                    text("SELECT pg_try_advisory_xact_lock(:number)"), {"number": _number(one)}
                ).scalar()
                if is_free:
                    free.add(one)
        ended = [one for one in executors if one in free and one in self._seen]
        self._seen = free
        return ended


_forgotten: list[Any] = []


def _number(executor: str | None) -> int:
    digest = hashlib.sha256(f"kantan_agents/{executor}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
