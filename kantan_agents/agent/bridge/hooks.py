"""The caller's run hooks, with an event for each handoff."""

from __future__ import annotations

from typing import Any

from agents import RunHooks
from agents.lifecycle import RunHooksBase

from kantan_agents.core.events import HandedOff
from kantan_agents.core.pipeline import Run

_FORWARDED = [name for name in dir(RunHooks) if name.startswith("on_") and name != "on_handoff"]


class ObservingHooks(RunHooks[Any]):
    """Emits handoff events and forwards all calls to the caller's hooks."""

    def __init__(self, run: Run, given: RunHooks[Any] | None) -> None:
        self._run = run
        self._given = given
        if given is not None:
            for name in _FORWARDED:
                setattr(self, name, getattr(given, name))

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Emit ``HandedOff``, then call the caller's hook."""
        if self._run.events is not None:
            await self._run.events.emit(HandedOff, agent=from_agent.name, to_agent=to_agent.name)
        if self._given is not None:
            await self._given.on_handoff(context, from_agent, to_agent)


def observing_hooks(run: Run, given: Any) -> Any:
    """Return observing hooks; the SDK handles other values."""
    events = run.events
    if events is None or not events.wants(HandedOff):
        return given
    if given is not None and not isinstance(given, RunHooksBase):
        return given
    return ObservingHooks(run, given)
