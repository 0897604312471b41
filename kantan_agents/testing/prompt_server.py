"""A uvicorn server that stops without delay, since a test suite starts and stops hundreds of them."""

from __future__ import annotations

import asyncio
import socket

import anyio
import uvicorn

_GRACE_SECONDS = 1
_POLL_SECONDS = 0.002
_UNTIL_CONNECTED = 3
"""Iterations of the event loop from accepting a connection to ``connection_made``."""


class PromptServer(uvicorn.Server):
    """Stops on an event; uvicorn's own server polls for its end every tenth of a second."""

    _loop: asyncio.AbstractEventLoop | None = None
    _end: asyncio.Event

    def stop(self) -> None:
        """Stop the server, from any thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end.set)

    async def main_loop(self) -> None:
        """Serve until ``stop`` is called."""
        self._end = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):  # True if it was stopped before it started
            await self._end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and give the open ones a second to finish."""
        # asyncio does not close a connection that it accepts while its server closes: accept no more first.
        loop = asyncio.get_running_loop()
        for server in self.servers:
            for listener in server.sockets:
                loop.remove_reader(listener.fileno())
        for _ in range(_UNTIL_CONNECTED):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with anyio.move_on_after(_GRACE_SECONDS):
            # uvicorn does not signal when these are empty.
            while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
        for task in list(self.server_state.tasks):
            task.cancel()
        # A client whose event loop is blocked until this server has stopped cannot close its side.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # closes their sockets
