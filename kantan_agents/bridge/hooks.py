"""Hooks of a run: the caller's own, and with them what only the SDK knows."""

from __future__ import annotations

from typing import Any

from agents import RunHooks
from agents.lifecycle import RunHooksBase

from kantan_agents.events import HandedOff
from kantan_agents.pipeline import Run

_PASSED_ON = [name for name in dir(RunHooks) if name.startswith("on_") and name != "on_handoff"]


class TellingHooks(RunHooks[Any]):
    """Tells of hand-offs, and passes everything on to the caller's hooks."""

    def __init__(self, run: Run, given: RunHooks[Any] | None) -> None:
        self._run = run
        self._given = given
        if given is not None:
            for name in _PASSED_ON:
                setattr(self, name, getattr(given, name))

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Tell of a hand-off."""
        if self._run.events is not None:
            await self._run.events.emit(HandedOff, agent=from_agent.name, to_agent=to_agent.name)
        if self._given is not None:
            await self._given.on_handoff(context, from_agent, to_agent)


def telling_hooks(run: Run, given: Any) -> Any:
    """Return hooks that tell of hand-offs as well; what is no ``RunHooks`` is left to the SDK to refuse."""
    if run.events is None or (given is not None and not isinstance(given, RunHooksBase)):
        return given
    return TellingHooks(run, given)
