"""Converts records to JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kantan_agents.traces.capture.calls import (
    ModelAnswer,
    ModelCallRecord,
    ToolCallRecord,
    ToolDefinition,
)
from kantan_agents.traces.capture.canonical import canonical, ordered
from kantan_agents.traces.capture.encoding import encoder
from kantan_agents.traces.capture.reading import VERSION
from kantan_agents.traces.capture.shared import Shared, shared_item
from kantan_agents.traces.capture.values import RunRecord


def _refuse(value: Any) -> Any:
    raise TypeError(type(value).__name__)


_encode = encoder(_refuse)
_KINDS_OF_AGENT: Final = (("prompt", "prompt"), ("options", "options"))
_KINDS_OF_RUN: Final = (("rules", "rules"),)
_KINDS_OF_TOOL_CALL: Final = (("tool", "tool"), ("rules", "rules"))
_KINDS_OF_MODEL_CALL: Final = (
    ("model", "model"),
    ("instructions", "instructions"),
    ("settings", "settings"),
    ("tools", "tools"),
    ("handoffs", "tools"),
    ("output", "output"),
)
_KEPT: Final = ("at", "seconds", "input", "items", "arguments", "call_id", "model_calls", "tool_calls")


def data_of(run: RunRecord) -> dict[str, Any]:
    """Inline all content; ``run_record`` reads the result."""
    data: dict[str, Any] = {
        "version": VERSION,
        "agent": run.agent,
        "started_at": run.started_at.isoformat(),
        "seconds": run.seconds,
        "outcome": run.outcome,
        "input": run.input,
        "given": _given(run),
        "given_context": run.given_context,
        "is_nested": run.is_nested,
        "earlier": run.earlier,
        "output": run.output,
        "error": None if run.error is None else attrs.asdict(run.error),
        "is_streamed": run.is_streamed,
        "has_session": run.has_session,
        "arm": run.arm,
        "listings": [
            [one.server, one.before_call, one.tools, *([] if one.reason is None else [one.reason])]
            for one in run.listings
        ],
        "options": run.options,
        "agents": [attrs.asdict(agent) for agent in run.agents],
        "rules": attrs.asdict(run.rules),
        "model_calls": [_model_call(call, run) for call in run.model_calls],
        "tool_calls": [_tool_call(call, run) for call in run.tool_calls],
        "parent": None if run.parent_run is None else [run.parent_run, run.parent_call],
        "state": run.state,
        "missing": list(run.missing),
        "inner_runs": list(run.inner_runs),
    }
    kept = [name for name in ("given", "given_context", "earlier") if getattr(run, name) is not None]
    return _without_defaults(data, "output", *kept)


def _given(run: RunRecord) -> Any:
    if run.given is not None and canonical(run.given) == canonical(run.input):
        return True  # as in most runs
    return run.given


def _model_call(call: ModelCallRecord, run: RunRecord) -> dict[str, Any]:
    request = call.request
    return _without_defaults(
        {
            "at": (call.started_at - run.started_at).total_seconds(),
            "seconds": call.seconds,
            "agent": call.agent,
            "model": {
                "provider": call.provider,
                "model": call.model,
                "url": call.url,
                "api": call.api,
            },
            "instructions": request.instructions,
            "settings": request.settings,
            "tools": [_tool(tool) for tool in request.tools],
            "handoffs": [_tool(tool) for tool in request.handoffs],
            "output": None if request.output is None else attrs.asdict(request.output),
            "options": request.options,
            "input" if isinstance(request.input, str) else "items": request.input,
            "answer": None if call.answer is None else _answer(call.answer),
            "error": None if call.error is None else attrs.asdict(call.error),
            "is_streamed": call.is_streamed,
            "is_internal": call.is_internal,
            "context": call.context,
            "parent_call": call.parent_call,
            "broke_off": call.broke_off,
            "from_cache": call.from_cache,
            "is_superseded": call.is_superseded,
        },
        "context",
    )


def _answer(answer: ModelAnswer) -> dict[str, Any]:
    data = attrs.asdict(answer)
    if answer.cut_off is None:
        del data["cut_off"]  # as in most answers
    return data


def _tool_call(call: ToolCallRecord, run: RunRecord) -> dict[str, Any]:
    definition = _tool(call.tool)
    names = definition.pop("names", [call.tool.name])
    return _without_defaults(
        {
            "at": (call.started_at - run.started_at).total_seconds(),
            "seconds": call.seconds,
            "call_id": call.call_id,
            "agent": call.agent,
            "name": call.tool.name,
            "tool": definition,
            "names": names,
            "arguments": call.arguments,
            "output": call.output,
            "error": None if call.error is None else attrs.asdict(call.error),
            "result": None if canonical(call.result) == canonical(call.output) else call.result,
            "failure": None if call.failure is None else attrs.asdict(call.failure),
            "decision": None if call.decision is None else attrs.asdict(call.decision),
            "rules": None if call.rules == run.rules else attrs.asdict(call.rules),
            "parameter": call.parameter,
            "folds": call.folds,
            "origin": call.origin,
            "received": list(call.received),
            "has_other_arguments": call.has_other_arguments,
            "parent_call": call.parent_call,
            "is_content": call.is_content,
        },
        "output",
        *(() if canonical(call.result) == canonical(call.output) else ("result",)),
    )


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    data = attrs.asdict(tool)
    if tuple(tool.names) == (tool.name,):
        del data["names"]
    return {name: value for name, value in data.items() if name in ("kind", "name") or value}


def _without_defaults(data: dict[str, Any], *more: str) -> dict[str, Any]:
    empty: tuple[Any, ...] = (None, False, [], {}, ())
    kept = (*_KEPT, *more)
    return {name: value for name, value in data.items() if name in kept or value not in empty}


def with_shared_contents(data: Mapping[str, Any]) -> dict[str, Any]:
    """Share inline content, in the form for ``pack``."""
    known: dict[tuple[str, bytes], Shared] = {}

    def place(kind: str, value: Any) -> Shared:
        packed = _encode(value)
        return known.setdefault((kind, packed), Shared(kind, packed))

    own = _placed_run(data, place, long_items=True)
    for name in ("input", "given", "earlier"):
        if isinstance(own.get(name), (list, tuple)):
            own[name] = _items(own[name])
    return own


def _placed_run(
    data: Mapping[str, Any], place: Callable[[str, Any], Any], *, long_items: bool
) -> dict[str, Any]:
    own = {
        **data,
        "agents": [_placed(agent, place, _KINDS_OF_AGENT) for agent in data.get("agents", ())],
        "model_calls": [
            _placed_model_call(call, place, long_items=long_items) for call in data["model_calls"]
        ],
        "tool_calls": [_placed(call, place, _KINDS_OF_TOOL_CALL) for call in data["tool_calls"]],
    }
    own = _placed(own, place, _KINDS_OF_RUN)
    if own.get("listings"):
        own["listings"] = [
            [server, before_call, None if tools is None else place("listing", tools), *reason]
            for server, before_call, tools, *reason in own["listings"]
        ]
    return own


def _placed_model_call(
    call: Mapping[str, Any], place: Callable[[str, Any], Any], *, long_items: bool
) -> dict[str, Any]:
    placed = _placed(call, place, _KINDS_OF_MODEL_CALL)
    if not long_items:
        return placed
    if "items" in placed:
        placed["items"] = _items(placed["items"])
    if "answer" in placed:
        answer = placed["answer"]
        placed["answer"] = {**answer, "output": _items(answer["output"])}
    return placed


def _items(items: Iterable[Any]) -> list[Any]:
    return [shared_item(_encode(item)) for item in items]


def _placed(
    data: Mapping[str, Any], place: Callable[[str, Any], Any], kinds: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    placed = dict(data)
    for name, kind in kinds:
        value = placed.get(name)
        if value is not None:
            placed[name] = place(kind, value)
    return placed


def with_contents_apart(runs: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the shared items, and the records with references."""
    places: dict[bytes, int] = {}
    contents: list[Any] = []

    def place(kind: str, value: Any) -> int:
        found = places.setdefault((ordered if kind == "rules" else canonical)(value), len(contents))
        if found == len(contents):
            contents.append(value)
        return found

    return contents, [_placed_run(run, place, long_items=False) for run in runs]
