"""The status line of an answer."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from time import monotonic
from typing import Final

import anyio
import attrs

from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.show_quantities import duration_text
from kantan_agents.core.events import ModelCallStarted, RetryScheduled

_MINUTE: Final = 60
_INTERVAL: Final = 0.5
_PAUSE: Final = 3.0
"""Seconds until a pause is shown."""


@attrs.frozen
class Activity:
    """What the agent does since ``since``; hidden for ``silent`` seconds."""

    what: str
    since: float
    silent: float = 0.0
    wait: RetryScheduled | None = None

    @classmethod
    def of(cls, event: ModelCallStarted | RetryScheduled) -> Activity:
        """Return that an agent thinks, now or after a wait."""
        wait = event if event.type == "retry_scheduled" else None
        return cls(f"{event.agent} is thinking", monotonic() + (wait.delay if wait else 0), wait=wait)

    @classmethod
    def writing(cls, agent: str) -> Activity:
        """Return the activity after output: soon the agent is thinking again."""
        return cls(f"{agent} is thinking", monotonic(), silent=_PAUSE)

    def text(self) -> str:
        """Return the status, or "" while hidden."""
        passed = monotonic() - self.since
        if passed < 0 and self.wait is not None:
            waits = f"{self.wait.agent} waits {math.ceil(-passed)} s"
            return f"{waits}: {_reason(self.wait.status)} (try {self.wait.attempt} of {self.wait.attempts})"
        if passed < self.silent:
            return ""
        seconds = int(passed)
        shown = f"{seconds} s" if seconds < _MINUTE else duration_text(seconds)
        return f"{self.what} ... {shown}" if seconds else f"{self.what} ..."


def _reason(status: int | None) -> str:
    if status is None:
        return "the connection failed"
    try:
        return f"{status}, {HTTPStatus(status).phrase.lower()}"
    except ValueError:
        return str(status)


@asynccontextmanager
async def ticking(screen: Screen, show_status: Callable[[], None]) -> AsyncIterator[None]:
    """Call ``show_status`` periodically, except during input and questions."""
    if not screen.shows_status:
        yield
        return
    failed: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_tick, screen, show_status)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below, because the group would wrap it
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed


async def _tick(screen: Screen, show_status: Callable[[], None]) -> None:
    while True:
        await anyio.sleep(_INTERVAL)
        if not screen.lock.locked():
            show_status()
