"""The state of one MCP server's connection, and its restoration after a loss."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from kantan_agents.errors import MCPServerLoopError
from kantan_agents.support.log import get_logger
from kantan_agents.tools.mcp.backoff import Rest, limits_for
from kantan_agents.tools.mcp.connection_keeper import ConnectionKeeper, start_task
from kantan_agents.tools.mcp.failures import is_lost, is_session_gone, is_silent, text_of
from kantan_agents.tools.mcp.loops import LoopEndedError, is_gone, run_on
from kantan_agents.tools.mcp.twins import adopt_session, has_session, is_closed, loop_of
from kantan_agents.tools.mcp.unavailable import LostInCallError, UnavailableError

T = TypeVar("T")

_MOST_LOOPS = 8
_PING_SECONDS = 5.0
_log = get_logger("kantan_agents.mcp")


class Connection:
    """The connection of one server object, shared by all agents and runs of the process.

    The user makes the first connection. After a loss, the next listing or call makes a new one, and
    concurrent runs wait for it. After a failure the server rests, so that not every run waits again.
    """

    def __init__(self, server: Any, forget: Callable[[Connection], None]) -> None:
        self.last_tools: Sequence[Any] | None = None
        self._server = weakref.ref(server, self._close_soon)
        self._forget = forget
        self._lock = threading.Lock()
        self._keeper: ConnectionKeeper | None = None
        self._attempt: Future[BaseException | None] | None = None
        self._attempt_loop: asyncio.AbstractEventLoop | None = None
        self._attempt_task: asyncio.Task[None] | None = None
        self._seen: tuple[Any, asyncio.AbstractEventLoop | None] = (None, None)
        self._lost: Any = None  # the session whose connection was lost
        self._closes_with_server = False
        self._rest = Rest()
        self._is_suspect = False
        self._silences = 0  # how often it has become suspect

    def is_of(self, server: Any) -> bool:
        """Return whether this is the connection of a server object."""
        return self._server() is server

    async def ask(self, question: Callable[[], Awaitable[T]], agent_name: str) -> T:
        """Send a request that may be repeated, over a new connection if the old one is lost.

        Raises:
            UnavailableError: The server cannot be reached, is silent, or rests.
            MCPServerLoopError: E37, its connection is on an event loop that cannot make progress.
        """
        server = self._server()
        return await self._on_some_loop(lambda: self._ask(server, question, agent_name), agent_name)

    async def call(self, send: Callable[[], Awaitable[T]], agent_name: str) -> T:
        """Send a call, over a new connection if the old one is known to be lost; never send it twice.

        Raises:
            LostInCallError: The connection was lost during the call.
            UnavailableError, MCPServerLoopError: As for ``ask``.
        """
        server = self._server()
        was_sent = False

        async def sent() -> T:
            nonlocal was_sent
            was_sent = True
            return await send()

        try:
            return await self._on_some_loop(
                lambda: self._call(server, sent, agent_name), agent_name, may_repeat=lambda: not was_sent
            )
        except LoopEndedError as error:
            raise LostInCallError from error

    async def _ask(self, server: Any, question: Callable[[], Awaitable[T]], agent_name: str) -> T:
        self._rest.check(server)
        if not self._needs_connection(server):
            session, silences = getattr(server, "session", None), self._silences
            try:
                return await self._answered(question)
            except Exception as error:
                if is_silent(error) and not is_lost(error):
                    # Concurrent requests without an answer count as one.
                    if not self._is_suspect or silences != self._silences:
                        # It may only be slow, and a new connection would lose its session.
                        self._is_suspect = True
                        self._silences += 1
                        raise self._rest.begin(server, error) from error
                elif not has_session(server) or not (is_lost(error) or is_session_gone(error, server)):
                    raise
                self._note_loss(server, session, error)
        if self._needs_connection(server):
            await self._reconnect(server)
        try:
            return await self._at_home(lambda: self._answered(question), agent_name)
        except MCPServerLoopError:
            raise
        except Exception as error:
            if is_silent(error) or is_lost(error):
                raise self._rest.begin(server, error) from error
            raise

    async def _answered(self, question: Callable[[], Awaitable[T]]) -> T:
        answer = await question()
        self._is_suspect, self._rest.failures, self._rest.until = False, 0, 0.0
        return answer

    async def _call(self, server: Any, send: Callable[[], Awaitable[T]], agent_name: str) -> T:
        if not self._needs_connection(server):
            session = getattr(server, "session", None)
            try:
                return await send()
            except Exception as error:
                is_refused = await _is_refused(server, session, error)
                if not is_refused and not is_lost(error):
                    raise
                self._note_loss(server, session, error)
                if not is_refused:
                    raise LostInCallError from error
        self._rest.check(server)
        if self._needs_connection(server):  # otherwise another run has connected it
            await self._reconnect(server)
        return await self._at_home(send, agent_name)

    # -- whether a connection exists

    def _needs_connection(self, server: Any) -> bool:
        """Return True only if the server is certainly not connected."""
        if not has_session(server):
            return False
        session = server.session
        if session is None or session is self._lost or is_closed(session):
            return True
        loop = self._loop_of(session)
        return loop is not None and loop is not asyncio.get_running_loop() and is_gone(loop)

    def _note_loss(self, server: Any, session: Any, error: BaseException) -> None:
        # Only for the used session: another run may have connected the server since.
        self._lost = session
        _log.warning("mcp_connection_lost", server=server.name, error=text_of(error))

    # -- a new connection

    async def _reconnect(self, server: Any) -> None:
        with self._lock:
            attempt, loop = self._attempt, self._attempt_loop
            # An attempt on an event loop that has ended is never done.
            if attempt is None or attempt.done() or (loop is not None and is_gone(loop)):
                attempt = self._attempt = Future()
                self._attempt_loop = asyncio.get_running_loop()
                self._attempt_task = start_task(self._try_again(server, attempt))
        # Not canceled with this run: others may wait for it.
        longest = 2 * limits_for(server).total
        await asyncio.wait({asyncio.wrap_future(attempt)}, timeout=longest)
        if not attempt.done():
            raise UnavailableError("the event loop that connects it makes no progress")
        error = attempt.result()
        if error is not None:
            raise UnavailableError(text_of(error)) from error

    async def _try_again(self, server: Any, attempt: Future[BaseException | None]) -> None:
        limits = limits_for(server)
        ends = time.monotonic() + limits.total
        error: BaseException = ConnectionError("it was closed while it was being connected")
        is_made = False
        self._close_with(server)
        try:
            if self._keeper is not None:
                await self._keeper.close()
            for number in range(1 if self._rest.failures else limits.attempts):
                if number:
                    await asyncio.sleep(limits.wait(number))
                try:
                    await self._connect(server, min(limits.attempt, ends - time.monotonic()))
                except Exception as failed:  # noqa: BLE001 - raised in each run that waits for it
                    error = failed
                    if _is_final(failed) or time.monotonic() >= ends:
                        break
                else:
                    self._rest.failures, self._rest.until, self._is_suspect, is_made = 0, 0.0, False, True
                    return
            self._rest.begin(server, error)
        finally:
            attempt.set_result(None if is_made else error)

    async def _connect(self, server: Any, seconds: float) -> None:
        self._keeper = keeper = ConnectionKeeper(server)
        adopt_session(server, await keeper.connected(seconds))
        self._seen = (server.session, keeper.loop)
        _log.info("mcp_server_connected", server=server.name)

    def _close_with(self, server: Any) -> None:
        """Let the user's ``cleanup`` close this connection, too."""
        if not self._closes_with_server:
            self._closes_with_server = True
            server.exit_stack.push_async_callback(self._close)

    async def _close(self) -> None:
        self._closes_with_server = False
        task, loop = self._attempt_task, self._attempt_loop
        if task is not None and not task.done():
            if loop is asyncio.get_running_loop():
                task.cancel()
                await asyncio.wait({task})
            elif loop is not None and not is_gone(loop):
                loop.call_soon_threadsafe(task.cancel)
        if self._keeper is not None:
            await self._keeper.close()

    def _close_soon(self, _: Any) -> None:
        self._forget(self)
        if self._keeper is not None:
            self._keeper.close_soon()

    # -- its event loop

    async def _on_some_loop(
        self, work: Callable[[], Awaitable[T]], agent_name: str, may_repeat: Callable[[], bool] = lambda: True
    ) -> T:
        """Continue on the next event loop if one ends; LoopEndedError if ``work`` must not be repeated."""
        for _ in range(_MOST_LOOPS):
            try:
                return await self._at_home(work, agent_name)
            except LoopEndedError as error:  # noqa: PERF203 - a single round is usual
                if not may_repeat():
                    raise
                ended = error
        raise UnavailableError(str(ended)) from ended

    async def _at_home(self, work: Callable[[], Awaitable[T]], agent_name: str) -> T:
        home = self._home()
        if home is None:
            return await work()
        return await run_on(home, work, getattr(self._server(), "name", "?"), agent_name)

    def _home(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop that must talk to the server; None if the running one can."""
        attempt, loop = self._attempt, self._attempt_loop
        if attempt is not None and not attempt.done() and loop is not None and loop.is_running():
            return None if loop is asyncio.get_running_loop() else loop
        session = getattr(self._server(), "session", None)
        loop = None if session is None else self._loop_of(session)
        if loop is None or loop is asyncio.get_running_loop() or is_gone(loop):
            return None
        return loop

    def _loop_of(self, session: Any) -> asyncio.AbstractEventLoop | None:
        seen, loop = self._seen
        if seen is not session:
            loop = loop_of(session)
            self._seen = (session, loop)
        return loop


async def _is_refused(server: Any, session: Any, error: Exception) -> bool:
    """Return whether the server rejected the session, so that the call was not executed.

    A tool may answer with the same words about its own sessions, so the server is queried again.
    """
    if not is_session_gone(error, server):
        return False
    try:
        await asyncio.wait_for(session.send_ping(), _PING_SECONDS)
    except Exception as answer:  # noqa: BLE001 - any error shows whether the session is gone
        return is_session_gone(answer, server)
    return False


def _is_final(error: BaseException) -> bool:
    return isinstance(error, OSError) and not isinstance(error, (ConnectionError, TimeoutError))
