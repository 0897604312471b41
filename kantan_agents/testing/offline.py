"""A model server on 127.0.0.1 that sends scripted replies over real HTTP, without a network or a key."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

import anyio
import attrs
import uvicorn
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from typing_extensions import Self

from kantan_agents.testing.profiles import Profile, profile_named
from kantan_agents.testing.prompt_server import PromptServer
from kantan_agents.testing.wire import (
    OK,
    Reply,
    ReplyLike,
    completion_body,
    completion_events,
    error_body,
    response_body,
    response_events,
)

RESPONSES = "/v1/responses"
CHAT_COMPLETIONS = "/v1/chat/completions"


@attrs.frozen
class RecordedRequest:
    """A request that the server received.

    Attributes:
        path: ``/v1/responses`` or ``/v1/chat/completions``.
        body: The JSON body.
        headers: The HTTP headers, names in lower case.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def model(self) -> str:
        """The requested model."""
        return str(self.body.get("model", ""))


ReplyFunction = Callable[[RecordedRequest], ReplyLike]


class OfflineServer:
    """Serves OpenAI's Responses and Chat Completions APIs, streamed and not streamed, from a script.

        with OfflineServer(["Paris."]) as server:
            agent = Agent("geo", "Answer.", model=server.bundle())

    Args:
        replies: The replies in order, one for each request, or a function of the request. A str is sent as
            text, a dict as JSON text, and a ``ScriptedToolCall`` or a list of them as tool calls. A ``Reply``
            sets every detail. Once the script is used up, the server answers with HTTP 400.
        keep_alive: Whether connections stay open for the next request. If one is still open when a test's
            event loop ends, Python emits a warning later, in another test.
        profile: The kind of provider to imitate: a name from ``PROFILES`` or a ``Profile``. The server
            rejects the requests that this provider rejects, and formats the dicts of the script as its models
            do.

    Attributes:
        requests: The requests received so far, in order.
    """

    def __init__(
        self,
        # Not Iterable[ReplyLike]: mypy infers list[object] for a list of texts and calls.
        replies: Iterable[object] | ReplyFunction = (),
        *,
        keep_alive: bool = False,
        profile: str | Profile | None = None,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self._profile = profile_named(profile)
        self._answer = replies if callable(replies) else _from_script(replies)
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
        # context is never used, and saves loading the system's certificates, which takes longer than a run.
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
            reply = self._reply(recorded)
        if reply.delay:
            await anyio.sleep(reply.delay)
        headers = {} if self._keep_alive else {"connection": "close"}
        headers |= reply.headers
        if reply.body is not None:
            return Response(reply.body, reply.status, headers=headers, media_type="application/json")
        if reply.status != OK:
            return JSONResponse(error_body(reply), reply.status, headers=headers)
        responses = recorded.path == RESPONSES
        if body.get("stream"):
            events = (response_events if responses else completion_events)(reply, recorded.model)
            lines = _server_sent(events, done=not responses)
            return StreamingResponse(lines, headers=headers, media_type="text/event-stream")
        make_body = response_body if responses else completion_body
        return JSONResponse(make_body(reply, recorded.model), headers=headers)

    def _reply(self, recorded: RecordedRequest) -> Reply:
        if self._profile is None:
            return Reply.of(self._answer(recorded))
        # A rejected request does not use up a reply of the script.
        return self._profile.refuses(recorded.body) or self._profile.reply(
            recorded.body, self._answer(recorded)
        )


def _from_script(replies: Iterable[object]) -> ReplyFunction:
    script: list[Any] = list(replies)
    for reply in script:
        Reply.of(reply)  # report a wrong script at once, not at the first request
    remaining = iter(script)
    exhausted = Reply("the script of the OfflineServer has no reply left", status=400)

    def next_reply(_request: RecordedRequest) -> ReplyLike:
        return next(remaining, exhausted)

    return next_reply


def _server_sent(events: Iterator[dict[str, Any]], *, done: bool) -> Iterator[str]:
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n"
    if done:
        yield "data: [DONE]\n\n"
