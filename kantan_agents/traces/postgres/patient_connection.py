"""Connects to Postgres with a limit for every wait.

TCP alone waits hours for a dead peer, and a proxy may accept data that no one reads. So the connection
options detect a dead peer, and ``AnswerLimit`` a silent server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS = 30.0
HURRIED_SECONDS: Final = 2.0
"""The same while this process stops."""

_OPTIONS: Final = {
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "kantan-agents",
    # Half a minute for a dead server, instead of TCP's hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def limiting_options(given: Collection[str]) -> dict[str, Any]:
    """Return the default options that the URL does not set."""
    return {name: value for name, value in _OPTIONS.items() if name not in given}


class AnswerLimit:
    """How long connections wait for a silent server.

    ``seconds`` may change meanwhile; ``is_hurried``: this process stops.
    """

    def __init__(self) -> None:
        self.seconds = ANSWER_SECONDS
        self.is_hurried = False
        self._is_gone = False

    def hurry(self) -> None:
        """Shorten the wait because this process stops; wait in vain only once."""
        if not self.is_hurried:
            self.seconds = min(self.seconds, HURRIED_SECONDS)
            self.is_hurried = True

    def miss(self) -> None:
        """Note that the server did not answer in time."""
        if self.is_hurried:
            self._is_gone, self.seconds = True, 0.0  # the other connections wait no longer either

    def connect(self, *args: Any, **options: Any) -> psycopg.Connection[Any]:
        """Return a connection that closes if the server is silent too long."""
        import psycopg

        if self._is_gone:
            raise psycopg.OperationalError("the server does not answer, and this process stops")
        if self.is_hurried:
            options["connect_timeout"] = int(HURRIED_SECONDS)
        try:
            connection = _connection_type().connect(*args, **options)
        except psycopg.errors.ConnectionTimeout:
            self.miss()
            raise
        connection.limit = self
        return connection  # type: ignore[no-any-return]  # the type is made on first use


@lru_cache(maxsize=1)
def _connection_type() -> Any:
    import psycopg

    active = psycopg.pq.TransactionStatus.ACTIVE

    class LimitedConnection(psycopg.Connection[Any]):
        limit: AnswerLimit | None = None

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(_limited(gen, self._check), *args, **options)

        def _check(self, silent: float) -> None:
            # Without a statement, it waits for notifications.
            if self.limit is None or silent < self.limit.seconds or self.pgconn.transaction_status != active:
                return
            self.limit.miss()
            self.close()
            raise psycopg.OperationalError(f"the server has not answered for {silent:.0f} seconds")

    return LimitedConnection


def _limited(gen: Any, check: Callable[[float], None]) -> Generator[Any, Any, Any]:
    last = time.monotonic()
    try:
        state = next(gen)
        while True:
            ready = yield state  # the driver sends 0 after a moment of silence
            if ready:
                last = time.monotonic()
            else:
                check(time.monotonic() - last)
            state = gen.send(ready)
    except StopIteration as ended:
        return ended.value
