"""A uvicorn server that ends at once: a suite starts and stops hundreds of them."""

from __future__ import annotations

import asyncio
import socket

import anyio
import uvicorn

_GRACE_SECONDS = 1
_GLANCE_SECONDS = 0.002


class PromptServer(uvicorn.Server):
    """Does as uvicorn does, which looks every tenth of a second whether it is to end, without the wait."""

    _loop: asyncio.AbstractEventLoop | None = None
    _end: asyncio.Event

    def stop(self) -> None:
        """Have it end; from any thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end.set)

    async def main_loop(self) -> None:
        """Serve until ``stop``."""
        self._end = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):  # it has not been stopped before it began
            await self._end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and give those that are open a second to end."""
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with anyio.move_on_after(_GRACE_SECONDS):
            # uvicorn tells nobody when these have become empty.
            while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110
                await asyncio.sleep(_GLANCE_SECONDS)
        for task in list(self.server_state.tasks):
            task.cancel()
