"""Emits an event for each change of a rollout, in every process that watches it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Final

import anyio

from kantan_agents.agent.running.portal import background_loop
from kantan_agents.core.events import Handler, RolloutChanged
from kantan_agents.core.events.observers import OnlyKinds, WithRawEvents, everywhere
from kantan_agents.errors import KantanAgentsError
from kantan_agents.lab.rollout.live.shared import Shared
from kantan_agents.lab.rollout.state.rows import RolloutChange, read_history
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.rollout")
_HANDLER_SECONDS: Final = 30.0


def notify(shared: Shared, path: Path, *, since: int) -> None:
    """Emit the changes of a rollout after a revision.

    Handlers are called in this thread; what an async one returns is awaited on the library's background loop.

    Args:
        shared: The rollout.
        path: The trace database.
        since: The revision that is known.
    """
    try:
        changes = read_history(path, shared.name)[since:]
    except KantanAgentsError as error:
        _log.error("changes of a rollout not read", rollout=shared.name, error=str(error))
        return
    for change in changes:
        event = _event(shared.plan.agent, change)
        for handler in _handlers(shared):
            _call(handler, event)


def _event(agent: str, change: RolloutChange) -> RolloutChanged:
    return RolloutChanged(
        run_id="",
        parent_run_id=None,
        agent=agent,
        sequence=0,
        time=change.at,
        rollout=change.rollout,
        action=change.action,
        share=change.share,
        arm=change.arm,
        author=change.author,
        reason=change.reason,
    )


def _handlers(shared: Shared) -> list[Handler]:
    found: list[Handler] = []
    for handler in (*everywhere.handlers, *(one for own in list(shared.observers) for one in own.handlers)):
        plain = handler.handler if isinstance(handler, WithRawEvents) else handler
        if isinstance(plain, OnlyKinds) and RolloutChanged not in plain.kinds:
            continue
        if not any(plain == known for known in found):
            found.append(plain)
    return found


def _call(handler: Handler, event: RolloutChanged) -> None:
    try:
        returned: Any = handler(event)
        if inspect.isawaitable(returned):

            async def waited() -> None:
                with anyio.fail_after(_HANDLER_SECONDS):
                    await returned

            background_loop.run(waited)
    except Exception as error:  # noqa: BLE001 - code of the application
        _log.error("observer failed", event_type=event.type, rollout=event.rollout, error=repr(error))
