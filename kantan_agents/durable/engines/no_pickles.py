"""Prevents DBOS from reading pickles, which could run the code of a database's writer."""

from __future__ import annotations

from threading import Lock
from typing import Any, NoReturn

_lock = Lock()


def refuse_pickles() -> None:
    """Let DBOS read only JSON in this process.

    Each row chooses its deserializer. A database file may come from a repository, or an agent's command may
    have written to it.
    """
    from dbos import _serialization

    module: Any = _serialization

    with _lock:
        known = module.DBOSDefaultSerializer
        if not isinstance(known, _Refusing):
            module.DBOSDefaultSerializer = _Refusing(known)


class _Refusing:
    def __init__(self, known: Any) -> None:
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known, name)

    def deserialize(self, serialized_data: str) -> NoReturn:
        del serialized_data
        raise TypeError("it is a pickle, and reading one could run any program")
