"""``api/run``: one run."""

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from kantan_agents.errors import InvalidOptionError, TraceNotFoundError
from kantan_agents.lab.evaluation.dataset.jsonl import to_jsonl
from kantan_agents.lab.evaluation.dataset.recorded_cases import cases_of_trace
from kantan_agents.lab.replay import Recording
from kantan_agents.page.api.answers import json_endpoint, state_of
from kantan_agents.page.data.read_run import read_run
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.records import StoredSpan


async def _run(request: Request) -> Any:
    state, trace_id = state_of(request), request.path_params["trace_id"]
    return await run_sync(read_run, state.store, trace_id, state.prices)


async def _span(request: Request) -> Any:
    span = await _found_span(request)
    part = request.query_params.get("part")
    if part is None:
        return dict(vars(span))  # whole, as kantan-llm's record
    if part not in {"input", "output"}:
        raise InvalidOptionError(option="part", reason=f"must be input or output, not {part!r}")
    # As a file: a browser must never render it.
    return PlainTextResponse(
        getattr(span, part) or "", headers={"Content-Disposition": f'attachment; filename="{part}.txt"'}
    )


async def _found_span(request: Request) -> StoredSpan:
    store, wanted = state_of(request).store, request.path_params
    return await run_sync(_span_of, store, wanted["trace_id"], wanted["span_id"])


def _span_of(store: TraceStore, trace_id: str, span_id: str) -> StoredSpan:
    for span in store.trace(trace_id).spans:
        if span.span_id == span_id:
            return span
    raise TraceNotFoundError(trace_id=trace_id, path=str(store.path), reason=f"it has no span {span_id}")


async def _recording(request: Request) -> Any:
    store, trace_id = state_of(request).store, request.path_params["trace_id"]
    return await run_sync(lambda: Recording.from_trace(store, trace_id).to_dict())


async def _case(request: Request) -> Any:
    store, trace_id = state_of(request).store, request.path_params["trace_id"]
    cases = await run_sync(cases_of_trace, store, trace_id)
    return {"text": to_jsonl(cases).decode()}


async def _curl(request: Request) -> Any:
    store, wanted = state_of(request).store, request.path_params
    trace = await run_sync(store.trace, wanted["trace_id"])
    number: int = wanted["call"]
    if number >= len(trace.model_calls):
        reason = f"must be below {len(trace.model_calls)}, the number of recorded model calls, not {number}"
        raise InvalidOptionError(option="call", reason=reason)
    # Imported here: it needs the SDK, unlike the rest of the page.
    from kantan_agents.page.curl import curl_command

    return {"text": await curl_command(trace.model_calls[number])}


ROUTES = [
    Route("/run/{trace_id}", json_endpoint(_run)),
    Route("/run/{trace_id}/span/{span_id}", json_endpoint(_span)),
    Route("/run/{trace_id}/case", json_endpoint(_case)),
    Route("/run/{trace_id}/call/{call:int}/curl", json_endpoint(_curl)),
    Route("/run/{trace_id}/recording", json_endpoint(_recording)),
]
