"""A local HTTP server that returns recorded bodies or event streams, and can hang or break off."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import attrs
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from typing_extensions import Self

from kantan_agents.testing.offline import PromptServer

WIRE = Path(__file__).parent / "wire"


def recorded(name: str) -> Any:
    return json.loads((WIRE / f"{name}.json").read_text("utf-8"))


@attrs.frozen
class Body:
    """One response: JSON data, raw bytes, or events; ``hangs`` waits until the client disconnects."""

    data: Any = None
    raw: bytes | None = None
    events: list[Any] | None = None
    status: int = 200
    headers: dict[str, str] = attrs.field(factory=dict)
    type: str = "application/json"
    hangs: bool = False
    breaks: bool = False


Answering = Callable[[str, str, dict[str, Any]], Body]
"""Returns the answer to a request, from its method, path and body."""


class WireServer:
    """Returns scripted responses one after the other, or those of a function, and records the requests."""

    def __init__(self, answers: Iterable[Body | Any] | Answering) -> None:
        self._answering = answers if callable(answers) else None
        scripted = () if callable(answers) else answers
        self._answers = iter([answer if isinstance(answer, Body) else Body(answer) for answer in scripted])
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.hanging = threading.Event()
        self.left = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", 0))
        self._port = listener.getsockname()[1]
        app = Starlette(routes=[Route("/{path:path}", self._handle, methods=["POST", "DELETE"])])
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, lifespan="off", loop="asyncio", http="h11", ws="none"
        )
        self._server = PromptServer(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._thread.join()

    async def _handle(self, request: Request) -> Response:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        sent = await request.json() if request.method == "POST" else {}
        self.requests.append((path, sent, dict(request.headers)))
        body = self._answering(request.method, path, sent) if self._answering else next(self._answers)
        headers = {"connection": "close", **body.headers}
        if body.events is not None:
            lines = self._events(body)
            return StreamingResponse(lines, body.status, headers=headers, media_type="text/event-stream")
        if body.hangs:
            return StreamingResponse(self._hang(b"{"), headers=headers, media_type=body.type)
        if body.breaks:
            headers["content-length"] = "1000"
            return StreamingResponse(self._broken(), headers=headers, media_type=body.type)
        content = json.dumps(body.data).encode() if body.raw is None else body.raw
        return Response(content, body.status, headers=headers, media_type=body.type)

    async def _events(self, body: Body) -> AsyncIterator[bytes]:
        for event in body.events or ():
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
            yield f"{name}data: {data}\r\n\r\n".encode()
        if body.hangs:
            async for chunk in self._hang(b": waiting\n\n"):
                yield chunk

    async def _hang(self, chunk: bytes) -> AsyncIterator[bytes]:
        try:
            yield chunk
            self.hanging.set()
            await anyio.sleep_forever()
        finally:
            self.left.set()

    async def _broken(self) -> AsyncIterator[bytes]:
        yield b'{"cont'
