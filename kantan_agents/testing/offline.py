"""A model server on 127.0.0.1 that sends scripted replies."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any

import anyio
import uvicorn
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from typing_extensions import Self

from kantan_agents.testing.faults import breaks_connection, error_body, http_reply
from kantan_agents.testing.profiles import Profile, profile_named
from kantan_agents.testing.recorded_request import CHAT_COMPLETIONS, RESPONSES, RecordedRequest
from kantan_agents.testing.replies import OK, Reply, ReplyFunction
from kantan_agents.testing.script import Script, read_script, resolve
from kantan_agents.testing.wire import (
    NotSendableError,
    completion_body,
    completion_events,
    response_body,
    response_events,
)

_BAD_REQUEST = 400
_REPEATED = "x-stainless-retry-count"  # OpenAI client: how often it has sent this request before

_GRACE_SECONDS = 1
_POLL_SECONDS = 0.002
_UNTIL_CONNECTED = 3
"""Iterations from accepting a connection to ``connection_made``."""


class OfflineServer:
    """Serves OpenAI's Responses and Chat Completions APIs, streamed and not streamed, from a script.

        with OfflineServer(["Paris."]) as server:
            agent = Agent("geo", "Answer.", model=server.bundle())

    Args:
        replies: The replies in order, one for each request, or a function of the request. A reply is a str, a
            dict, a tool call or anything else in ``ReplyLike``. Once the script is used up, the server
            answers with HTTP 400. An API error as a reply keeps its status, a connection error closes the
            connection, and any other exception is status 500.
        keep_alive: Whether connections stay open for the next request. If one is still open when a test's
            event loop ends, Python emits a warning later, in another test.
        profile: The kind of provider to imitate: a name from ``PROFILES`` or a ``Profile``. The server
            rejects the requests that this provider rejects, and formats the dicts of the script as its models
            do.

    Raises:
        InvalidScriptError: E75, a reply is not valid. The message has its position.

    Attributes:
        requests: The requests received so far, in order.
    """

    def __init__(
        self,
        replies: Script[RecordedRequest] = (),
        *,
        keep_alive: bool = False,
        profile: str | Profile | None = None,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self._profile = profile_named(profile)
        # An invalid script is reported immediately, not at the first request.
        self._steps: Iterator[Reply | ReplyFunction] = (
            itertools.repeat(replies) if callable(replies) else iter(read_script(replies, "replies"))
        )
        self._failed: Reply | None = None
        self._lock = threading.Lock()
        self._keep_alive = keep_alive
        self._server: PromptServer | None = None
        self._thread: threading.Thread | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        """Base URL for an OpenAI client, ``http://127.0.0.1:<port>/v1``."""
        if self._server is None:
            raise RuntimeError("the OfflineServer is not running; use it in a with statement")
        return f"http://127.0.0.1:{self._port}/v1"

    def bundle(
        self, model: str = "offline-model", *, api: str | None = None, provider: str | None = None
    ) -> AsyncClientBundle:
        """Return a client for this server, to pass as ``Agent(model=...)``.

        Args:
            model: The model name to send.
            api: ``"responses"`` or ``"chat"``. By default the API of the profile, else ``"responses"``.
            provider: kantan-llm's name for the provider. By default the one that fits the profile and the
                API.
        """
        profile = self._profile
        if api is None:
            api = profile.api if profile is not None else "responses"
        if api not in ("responses", "chat"):
            raise ValueError(f'api must be "responses" or "chat", not {api!r}')
        if provider is None:
            provider = {"responses": "openai", "chat": profile.provider if profile is not None else "compat"}[
                api
            ]
        # trust_env=False: a proxy set in the environment cannot reach this machine's loopback. The empty TLS
        # context is never used, and avoids loading the system's certificates, which takes longer than a run.
        no_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        direct = DefaultAsyncHttpxClient(trust_env=False, verify=no_tls)
        client = AsyncOpenAI(api_key="offline", base_url=self.base_url, http_client=direct)
        return AsyncClientBundle(client, model, provider, self.base_url)

    def environment(self) -> dict[str, str]:
        """Return environment variables that send every provider of kantan-llm to this server."""
        names = ("OPENAI", "CLAUDE", "GOOGLE", "KANTAN_LLM", "LMSTUDIO", "OLLAMA")
        urls = {f"{name}_BASE_URL": self.base_url for name in names}
        keys = {f"{name}_API_KEY": "offline" for name in names[:4]}
        return urls | keys | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def __enter__(self) -> Self:
        if self._server is not None:
            raise RuntimeError("this OfflineServer is running already")
        # The socket listens from here on, so a client may connect before uvicorn has started.
        listener = socket.create_server(("127.0.0.1", 0))
        # Connections inherit TCP_NODELAY. Without it, the body of a response waits until its headers are
        # acknowledged, which takes 40 ms on a connection that stays open.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = listener.getsockname()[1]
        routes = [Route(path, self._handle, methods=["POST"]) for path in (RESPONSES, CHAT_COMPLETIONS)]
        config = uvicorn.Config(
            Starlette(routes=routes),
            log_level="critical",
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http="h11",
            ws="none",
        )
        self._server = PromptServer(config)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [listener]},
            name="OfflineServer",
            daemon=True,
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.stop()
            self._thread.join()
        self._server = self._thread = None

    async def _handle(self, request: Request) -> Response:
        body = await request.json()
        recorded = RecordedRequest(request.url.path, body, dict(request.headers))
        with self._lock:
            self.requests.append(recorded)
        reply = await self._reply(recorded)
        if reply.delay:
            await anyio.sleep(reply.delay)
        if reply.error is not None:
            if breaks_connection(reply.error):
                self._failed = reply
                self._abort(request)
                return Response()  # is not sent
            reply = http_reply(reply.error)
        headers = {} if self._keep_alive else {"connection": "close"}
        headers |= reply.headers
        if reply.body is not None:
            return Response(reply.body, reply.status, headers=headers, media_type="application/json")
        if reply.status != OK:
            return JSONResponse(error_body(reply), reply.status, headers=headers)
        try:
            reports = self._profile is None or self._profile.usage == "asked"
            return _sent(reply, recorded, headers, with_usage=reports and recorded.wants_usage)
        except NotSendableError as error:
            message = f"the Chat Completions API cannot send this reply of the script: {error}"
            return JSONResponse(
                error_body(Reply(message, status=_BAD_REQUEST)), _BAD_REQUEST, headers=headers
            )

    async def _reply(self, recorded: RecordedRequest) -> Reply:
        if self._failed is not None and recorded.headers.get(_REPEATED, "0") != "0":
            return self._failed  # the client repeats a request without a response: it is one model call
        self._failed = None
        try:
            if self._profile is None:
                return await self._next(recorded)
            # A rejected request does not use up a reply of the script.
            refused = self._profile.refuses(recorded.body)
            return refused or self._profile.reply(recorded.body, await self._next(recorded))
        except Exception as error:  # noqa: BLE001 - of a function in the script: the client gets its message
            return Reply(error=error)

    async def _next(self, recorded: RecordedRequest) -> Reply:
        with self._lock:
            step = next(self._steps, _EXHAUSTED)
        return await resolve(step, recorded)

    def _abort(self, request: Request) -> None:
        client = request.client
        connections: list[Any] = (
            list(self._server.server_state.connections) if self._server is not None else []
        )
        for connection in connections:
            if client is not None and connection.client == (client.host, client.port):
                connection.transport.abort()


_EXHAUSTED = Reply("the script of the OfflineServer has no reply left", status=_BAD_REQUEST)


def _sent(
    reply: Reply, recorded: RecordedRequest, headers: Mapping[str, str], *, with_usage: bool
) -> Response:
    responses = recorded.path == RESPONSES
    if not recorded.streamed:
        make_body = response_body if responses else completion_body
        return JSONResponse(make_body(reply, recorded.model, with_usage=with_usage), headers=headers)
    if responses and reply.events is not None:
        lines: Any = _exact(reply.events, recorded)
    else:
        make_events = response_events if responses else completion_events
        events = make_events(reply, recorded.model, with_usage=with_usage)
        lines = _server_sent(events, done=not responses)
    return StreamingResponse(lines, headers=headers, media_type="text/event-stream")


async def _exact(events: Any, recorded: RecordedRequest) -> AsyncIterator[str]:
    stream: Any = events(recorded) if callable(events) else _iterated(events)
    async with aclosing(stream):
        async for event in stream:
            yield f"event: {event.type}\ndata: {event.model_dump_json()}\n\n"


async def _iterated(events: Iterable[Any]) -> AsyncIterator[Any]:
    for event in events:
        yield event


def _server_sent(events: Iterator[dict[str, Any]], *, done: bool) -> Iterator[str]:
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n"
    if done:
        yield "data: [DONE]\n\n"


class PromptServer(uvicorn.Server):
    """Stops on an event; uvicorn's server polls every tenth of a second."""

    _loop: asyncio.AbstractEventLoop | None = None
    _end: asyncio.Event

    def stop(self) -> None:
        """May be called from any thread."""
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
        """Give connections a second to finish."""
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
