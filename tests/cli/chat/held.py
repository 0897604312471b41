"""A reply that the server begins to stream, and holds until a test lets it go on."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio.to_thread
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from typing_extensions import Self

from kantan_agents.testing import Reply
from kantan_agents.testing.wire import response_events

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class Held:
    """``Held("first part", "second part").reply`` stops between its parts until ``go_on()``."""

    def __init__(self, first: str, second: str) -> None:
        self._parts = first, second
        self._may_go_on = threading.Event()
        self.reply = Reply(events=self._events)

    def go_on(self) -> None:
        self._may_go_on.set()

    async def _events(self, recorded: Any) -> AsyncIterator[Any]:
        first, second = self._parts
        has_begun = False
        for event in response_events(Reply(first + second), recorded.model):
            if event["type"] != "response.output_text.delta":
                yield _EVENT.validate_python(event)
            elif not has_begun:
                has_begun = True
                yield _EVENT.validate_python({**event, "delta": first})
                await anyio.to_thread.run_sync(partial(self._may_go_on.wait, 60), abandon_on_cancel=True)
                yield _EVENT.validate_python({**event, "delta": second})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on()  # a thread of the server may still wait
