"""The model server of all frameworks over HTTP, for Responses and Chat Completions.

    python -m benchmarks.peers.model_server

Prints its base URL, and ends when its input ends.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.peers.frameworks import facts
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from kantan_agents.testing.recorded_request import RecordedRequest


def reply(request: RecordedRequest) -> str | ScriptedToolCall:
    """Return a call of the tool if there is one tool and no result yet, else the answer."""
    body = request.body
    items: list[dict[str, Any]] = body["messages"] if "messages" in body else _items(body["input"])
    has_result = any(
        item.get("role") == "tool" or item.get("type") == "function_call_output" for item in items
    )
    if len(body.get("tools") or ()) == 1 and not has_result:
        return ScriptedToolCall(facts.TOOL_NAME, {"city": facts.CITY}, facts.CALL_ID)
    return facts.ANSWER


def _items(given: Any) -> list[dict[str, Any]]:
    return [] if isinstance(given, str) else given


def main() -> None:
    """Serve until the input ends."""

    def forgetful_reply(request: RecordedRequest) -> str | ScriptedToolCall:
        # The server stores its requests for tests; here they would only use memory.
        server.requests.clear()
        return reply(request)

    server = OfflineServer(forgetful_reply, keep_alive=True)
    with server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
