"""Values that ``Redact(keep_in=...)`` restores in a resumed run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kantan_agents.core.pipeline import Run
from kantan_agents.middleware.redact.redact import Redact

_ORIGINALS = "originals"


class Originals:
    """A run's original values, which its user stores in the context."""

    def __init__(self, run: Run) -> None:
        middleware = run.agent.layers.middleware
        self._run = run
        self._redacts = [one for one in middleware if isinstance(one, Redact) and one.keep_in is not None]
        self._stored: dict[str, set[str]] = {one.keep_in or "": set() for one in self._redacts}
        if self._redacts and run.parent_run is None:
            self.new()  # stored with the context

    def learn(self, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Take over the values in stored steps."""
        for body in bodies if self._redacts else ():
            for one in self._redacts:
                key = one.keep_in or ""
                values = (body.get(_ORIGINALS) or {}).get(key) or {}
                one.learn(self._run, values)
                self._stored[key].update(values)

    def new(self) -> dict[str, Any]:
        """Return the new values, for the next step's body."""
        found = {}
        for key, stored in self._stored.items():
            values = self._run.context.get(key)
            fresh = {place: values[place] for place in values if place not in stored} if values else {}
            if fresh:
                stored.update(fresh)
                found[key] = fresh
        return {_ORIGINALS: found} if found else {}
