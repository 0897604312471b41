"""The endpoints: waiting calls, answers, runs."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from kantan_agents.durable.http.answers import json_answer, refused
from kantan_agents.durable.management import Management
from kantan_agents.durable.records import call_data, whole_run
from kantan_agents.errors import InvalidOptionError

_MOST_BYTES: Final = 1_000_000
_KEYS: Final = frozenset({"answer", "by", "arguments", "reason"})


async def list_approvals(request: Request) -> Response:
    """Return the calls that wait, the oldest first."""
    runs: Management = request.app.state.runs
    shows_all = request.query_params.get("all", "") not in ("", "0", "false")
    calls = await runs.list_approvals(answered=shows_all, run_id=request.query_params.get("run"))
    return json_answer({"approvals": [call_data(call) for call in calls]})


async def answer_call(request: Request) -> Response:
    """Answer a call that waits."""
    runs: Management = request.app.state.runs
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # the types that a form of another site can send are others
        return refused("media_type", "send application/json", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    body = await _body(request)
    if body is None:
        return refused("too_large", f"send {_MOST_BYTES:,} bytes at most", HTTPStatus(413))
    given = _object(body)
    run_id, call_id = request.path_params["run"], request.path_params["call"]
    if given["answer"] == "approve":
        await runs.approve(run_id, call_id, by=given.get("by", ""), arguments=given.get("arguments"))
    else:
        await runs.reject(run_id, call_id, by=given.get("by", ""), reason=given.get("reason"))
    calls = await runs.list_approvals(answered=True, run_id=run_id)
    return json_answer(next((call_data(call) for call in calls if call.call_id == call_id), {}))


async def show_run(request: Request) -> Response:
    """Return a run."""
    return json_answer(await whole_run(request.app.state.runs, request.path_params["run"]))


async def _body(request: Request) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return None
    except ClientDisconnect:
        return b""
    return bytes(body)


def _object(body: bytes) -> dict[str, Any]:
    """Return the answer in a body.

    Raises:
        InvalidOptionError: E75, it is not one.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidOptionError(option="body", reason=f"is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InvalidOptionError(option="body", reason="must be a JSON object")
    unknown = sorted(given.keys() - _KEYS)
    if unknown:
        raise InvalidOptionError(option="body", reason=f"has an unknown key {unknown[0]!r}")
    if given.get("answer") not in ("approve", "reject"):
        reason = f'must be "approve" or "reject", not {given.get("answer")!r}'
        raise InvalidOptionError(option="answer", reason=reason)
    reason_given, arguments = given.get("reason"), given.get("arguments")
    # An answer that is half of one kind and half of the other is a mistake, and nobody knows which half.
    if given["answer"] == "approve" and reason_given is not None:
        raise InvalidOptionError(option="reason", reason="belongs to a rejection")
    if given["answer"] == "reject" and arguments is not None:
        raise InvalidOptionError(option="arguments", reason="belong to an approval")
    if reason_given is not None and not isinstance(reason_given, str):
        raise InvalidOptionError(option="reason", reason="must be a text")
    return given
