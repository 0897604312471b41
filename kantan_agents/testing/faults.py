"""Failures of a model call."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai

from kantan_agents.testing.replies import OK, InvalidScriptError, Reply

_SERVER_ERROR = 500
_NO_CONNECTION = (OSError, TimeoutError, httpx.TransportError, openai.APIConnectionError)
# For the OpenAI client, so that it does not retry. One exception of a script is one failed model call.
_NOT_REPEATED = {"x-should-retry": "false"}


def error_body(reply: Reply) -> dict[str, Any]:
    """The body of an API error."""
    message = reply.text or f"scripted error {reply.status}"
    return {"error": {"message": message, "type": "offline", "param": None, "code": None}}


def fails(reply: Reply) -> bool:
    """Whether the model call fails."""
    return reply.error is not None or reply.status != OK


def error_of(reply: Reply, where: str) -> Exception:
    """Return the client's error, without HTTP."""
    if reply.error is not None:
        return reply.error
    if reply.status == OK:
        reason = "a body with status 200 needs HTTP; play this script with an OfflineServer"
        raise InvalidScriptError(option=where, reason=reason)
    raw = json.dumps(error_body(reply)).encode() if reply.body is None else reply.body
    request = httpx.Request("POST", "http://127.0.0.1/v1/responses")
    response = httpx.Response(reply.status, headers=dict(reply.headers), content=raw, request=request)
    # Private, but the only way to the client's own class and message, which differ between its versions. It
    # uses no attribute of the client.
    client = openai.AsyncOpenAI.__new__(openai.AsyncOpenAI)
    return client._make_status_error_from_response(response)


def breaks_connection(error: Exception) -> bool:
    """Whether no response arrives, rather than an HTTP error."""
    return isinstance(error, _NO_CONNECTION)


def http_reply(error: Exception) -> Reply:
    """An API error's own response, else status 500 with its message."""
    if isinstance(error, openai.APIStatusError):
        body = {"error": error.body if isinstance(error.body, dict) else {"message": error.message}}
        kept = {
            name: value for name, value in error.response.headers.items() if name.startswith("retry-after")
        }
        return Reply(
            status=error.status_code, body=json.dumps(body).encode(), headers={**kept, **_NOT_REPEATED}
        )
    return Reply(f"{type(error).__name__}: {error}", status=_SERVER_ERROR, headers=_NOT_REPEATED)
