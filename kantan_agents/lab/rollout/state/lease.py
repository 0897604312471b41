"""Decides which of several processes checks a rollout."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from kantan_agents.lab.rollout.state.tables import ROLLOUTS
from kantan_agents.traces.store.connection import changing, transaction

LEASE_SECONDS: Final = 5.0
"""A process that has not checked for so long has ended, or is busy."""
_RENEW_SECONDS: Final = 2.0
_WAIT_SECONDS: Final = 1.0


def take_check(path: Path, name: str, owner: str) -> bool:
    """Return whether this process is to check a rollout: no other has done so lately.

    If a clock was set back or forward, the check is free, at worst for two processes.
    """
    now = time.time()
    query = f"SELECT checked_by, checked_at FROM {ROLLOUTS} WHERE name = ?"  # noqa: S608
    with changing(path, wait=_WAIT_SECONDS) as connection:
        row = connection.execute(query, (name,)).fetchone()
        if row is None:
            return False
        age = abs(now - float(row["checked_at"] or 0.0))
        if row["checked_by"] == owner and age < _RENEW_SECONDS:
            return True
        if row["checked_by"] not in (owner, None) and age < LEASE_SECONDS:
            return False
        with transaction(connection):
            update = (
                f"UPDATE {ROLLOUTS} SET checked_by = ?, checked_at = ? "  # noqa: S608
                "WHERE name = ? AND checked_by IS ? AND checked_at IS ?"
            )
            values = (owner, now, name, row["checked_by"], row["checked_at"])
            return connection.execute(update, values).rowcount == 1
