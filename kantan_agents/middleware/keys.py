"""Finds the key of a run."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidOptionError, RunKeyError
from kantan_agents.support.arguments import shown

Per: TypeAlias = "str | Callable[[dict[str, Any]], Any] | None"
"""How to find the key of a run, such as its tenant.

A path in its context, such as ``"tenant"`` or ``"user.team"``, or a function of the context. None: all runs
have the same key.
"""

Key: TypeAlias = "str | int | UUID | None"
_ABSENT: Any = object()


class KeyOf:
    """Finds the key of a run; E75 for an invalid ``per``."""

    def __init__(self, middleware: str, per: Any) -> None:
        is_path = isinstance(per, str) and all(per.split("."))
        if per is not None and not is_path and not callable(per):
            reason = f'must be a path such as "tenant", a function of the context, or None, not {shown(per)}'
            raise InvalidOptionError(option="per", reason=reason)
        self._middleware = middleware
        self._per = per

    @property
    def is_shared(self) -> bool:
        """Whether all runs have the same key."""
        return self._per is None

    def of(self, run: Run) -> Key:
        """None if the context has none; E175 for another type than str, int or UUID."""
        if self._per is None:
            return None
        context = run.context
        found = self._per(context) if callable(self._per) else _at(context, self._per)
        if found is None or found is _ABSENT:
            return None
        if isinstance(found, enum.Enum):
            found = found.value
        # A subclass of str or int may override comparison.
        if type(found) is bool or not isinstance(found, (str, int, UUID)):
            raise self.error(f"must be a str, an int or a UUID, not {type(found).__name__}")
        if found == "":
            return None
        return found if isinstance(found, UUID) else (str(found) if isinstance(found, str) else int(found))

    def error(self, reason: str) -> RunKeyError:
        """Create the error for an unusable key."""
        what = f"context[{self._per!r}]" if isinstance(self._per, str) else "the result of per"
        return RunKeyError(middleware=self._middleware, what=what, reason=reason)

    def __repr__(self) -> str:
        if callable(self._per):
            return str(getattr(self._per, "__name__", type(self._per).__name__))
        return repr(self._per)


def _at(context: Any, path: str) -> Any:
    if isinstance(context, Mapping) and path in context:
        return context[path]
    for name in path.split("."):
        if not isinstance(context, Mapping) or name not in context:
            return _ABSENT
        context = context[name]
    return context
