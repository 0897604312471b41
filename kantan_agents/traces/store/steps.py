"""Changes a large file in small transactions, for other writers and a full disk."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

import attrs

T = TypeVar("T")

# Rows of the first and of the smallest transaction. A slow disk delays each, so fewer would not help.
FIRST = LEAST = 100
MOST = 5_000

# How long a transaction may block other writers; a statement on a slow disk may exceed it.
_HELD_SECONDS = 0.04

# The pause that every writer finds, by its longest wait so far: SQLite looks at a lock every 25 ms in the
# first 128 ms, every 50 ms in the next 100 ms, then every 100 ms.
_PAUSES = ((0.12, 0.03), (0.22, 0.06), (math.inf, 0.12))

# On a full disk, the next transaction is this many times smaller.
_FULL = 8

# A checkpoint waits for the disk, but other writers do not.
_STEPS_OF_A_LOG = 4


@attrs.define
class Pace:
    """Adapts the number of rows of a transaction to its time."""

    rows: int = attrs.Factory(lambda: FIRST)

    def took(self, seconds: float) -> None:
        """Adapt to the time of a transaction."""
        fitting = int(self.rows * _HELD_SECONDS / max(seconds, 0.001))
        self.rows = min(MOST, 2 * self.rows, max(fitting, LEAST))

    def slow_down(self) -> bool:
        """Adapt to a full disk; return False if no smaller transaction exists."""
        if self.rows == 1:
            return False
        self.rows = max(self.rows // _FULL, 1)
        return True


def pause_after(seconds: float) -> float:
    """Return how long to unlock the file for writers that waited this long."""
    return next(pause for waited, pause in _PAUSES if seconds <= waited)


class TransactionSteps:
    """Runs transactions of a few hundredths of a second, with pauses and checkpoints.

    A transaction that does not fit on the disk is repeated with fewer rows.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._may_begin = 0.0
        self._due = 0.0
        self._steps = 0
        self._steps_of_a_log = _STEPS_OF_A_LOG
        connection.execute("PRAGMA wal_autocheckpoint = 0")

    def run(self, work: Callable[[int], T], pace: Pace) -> T:
        """Call ``work`` with a number of rows in a transaction.

        ``work`` checks ``is_due`` between two statements: next to a busy event loop, each can take 5 ms.
        """
        while True:
            time.sleep(max(self._may_begin - time.monotonic(), 0))
            began = time.monotonic()
            try:
                result, seconds = self._at_once(work, pace.rows)
            except sqlite3.OperationalError as error:
                if "full" not in str(error) or not pace.slow_down():
                    raise
                self._steps_of_a_log = 1
                self._empty_log()
                continue
            ended = time.monotonic()
            self._may_begin = ended + pause_after(ended - began)
            pace.took(seconds)
            self._steps += 1
            if self._steps % self._steps_of_a_log == 0:
                self._empty_log()
            return result

    def is_due(self) -> bool:
        """Return whether the transaction has lasted long enough."""
        return time.monotonic() > self._due

    def _at_once(self, work: Callable[[int], T], rows: int) -> tuple[T, float]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        self._due = began + _HELD_SECONDS
        try:
            result = work(rows)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has rolled it back already
                connection.execute("ROLLBACK")
            raise
        return result, time.monotonic() - began

    def _empty_log(self) -> None:
        # Passive: other writers do not wait, and without a log it does nothing.
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
