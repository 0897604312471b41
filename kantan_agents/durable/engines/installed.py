"""``check_installed``: whether the engine is installed."""

from __future__ import annotations

from importlib.util import find_spec

from kantan_agents.errors import DurableDatabaseError

_NEEDED = ("dbos", "sqlalchemy")


def check_installed() -> None:
    """Check that the engine can be imported, without importing it.

    Raises:
        DurableDatabaseError: E156, it is not installed.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        reason = f"{missing[0]} is not installed: pip install 'kantan-agents[dbos]'"
        raise DurableDatabaseError(database="a database", reason=reason)
