"""An MCP server over HTTP of the older kind, with sessions that it can forget as by a restart."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import Self


class SessionServer:
    """A server with one tool, `read`, in a thread.

    Attributes:
        sessions: Ids of the sessions that it knows.
        opened: How many sessions it has opened.
        called: How often its tool was executed.
        error: What its tool answers instead of a result, as the protocol has it.
        url: Where it listens.
    """

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.opened = 0
        self.called = 0
        self.error: dict[str, Any] | None = None
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}/mcp"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, request: dict[str, Any], session: str | None) -> tuple[int, Any, dict[str, str]]:
        """Return the status, the body and the headers of the answer to a request."""
        method = request["method"]
        if method == "initialize":
            self.opened += 1
            self.sessions.add(f"session-{self.opened}")
            result: Any = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": {"name": "sessions", "version": "1"},
            }
            return 200, _reply(request, result), {"Mcp-Session-Id": f"session-{self.opened}"}
        if session not in self.sessions:
            return 404, None, {}
        if method == "tools/list":
            return 200, _reply(request, {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}), {}
        if method == "tools/call":
            self.called += 1
            if self.error is not None:
                return 200, {"jsonrpc": "2.0", "id": request["id"], "error": self.error}, {}
            content = [{"type": "text", "text": f"read in {session}"}]
            return 200, _reply(request, {"content": content}), {}
        if method == "resources/read":
            contents = [{"uri": request["params"]["uri"], "text": f"read in {session}"}]
            return 200, _reply(request, {"contents": contents}), {}
        if method == "ping":
            return 200, _reply(request, {}), {}
        return 202, None, {}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._send(*server.answer(request, self.headers.get("Mcp-Session-Id")))

            def do_GET(self) -> None:
                self._send(405, None, {})

            do_DELETE = do_GET

            def _send(self, status: int, body: Any, headers: dict[str, str]) -> None:
                data = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        return Handler


def _reply(request: dict[str, Any], result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}
