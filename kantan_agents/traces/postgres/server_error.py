"""An error of Postgres, raised as an sqlite3 error."""

from __future__ import annotations

import sqlite3
from typing import Final

# SQLSTATE classes caused by the rows: data exceptions, violated constraints, program limits, such as a row
# that is too large for an index.
_OF_ROWS: Final = ("22", "23", "54")
_LOCKED: Final = ("55P03", "40P01", "40001")


class ServerError(sqlite3.OperationalError):
    """An error of the server or the connection.

    Attributes:
        sqlstate: None if the server did not answer.
    """

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate

    @property
    def is_of_rows(self) -> bool:
        """Whether other rows could be written."""
        return self.sqlstate is not None and self.sqlstate[:2] in _OF_ROWS

    @property
    def is_locked(self) -> bool:
        """Whether another connection holds a lock."""
        return self.sqlstate in _LOCKED
