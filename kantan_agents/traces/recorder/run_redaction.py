"""Applies the user's ``redact`` function, which expects spans, to the record of a run.

A model call becomes a ``response`` span whose input starts with the instructions, a tool call a ``function``
span, the run's input and output a ``generation`` span, everything else ``custom`` spans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from kantan_agents.errors import RedactionError
from kantan_agents.traces.capture.captured import CapturedRun
from kantan_agents.traces.capture.reading import run_record
from kantan_agents.traces.capture.shared import pack
from kantan_agents.traces.capture.values import RunRecord
from kantan_agents.traces.capture.writing import data_of, with_shared_contents
from kantan_agents.traces.recorder.plain_json import decode
from kantan_agents.traces.recorder.redaction import Redact, call_redact

WITHHELD = "parts were left out by the redact function"
_NO_RULES: dict[str, Any] = {"layers": [], "limits": []}
_NOT_LISTS = "the redact function returned something else than a list of items"


def redact_run(captured: CapturedRun, redact: Redact) -> CapturedRun:
    """Return the redacted record, or raise E64 if none results."""
    run = _read(captured)
    data = _Redaction(run, redact).data()
    try:
        redacted = msgspec.structs.replace(captured, data=with_shared_contents(data))
        _read(redacted)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        reason = f"what it returned makes no record: {type(error).__name__}: {error}"
        raise RedactionError(span_id=captured.id, reason=reason) from error
    return redacted


def _read(captured: CapturedRun) -> RunRecord:
    packed = pack(captured.data)
    contents = [decode(content.packed) for content in packed.shared]
    return run_record(captured.id, captured.trace_id, decode(packed.own), contents.__getitem__)


class _Redaction:
    def __init__(self, run: RunRecord, redact: Redact) -> None:
        self._run = run
        self._redact = redact
        self._known: dict[str, Any] = {}
        self._missing = list(run.missing)

    def data(self) -> dict[str, Any]:
        data = data_of(self._run)
        data["agent"] = self._name(data["agent"])
        data["model_calls"] = [
            self._model_call(place, call) for place, call in enumerate(data["model_calls"])
        ]
        data["tool_calls"] = [self._tool_call(place, call) for place, call in enumerate(data["tool_calls"])]
        for agent in data.get("agents", ()):
            agent["name"] = self._name(agent["name"])
            for name in ("prompt", "context", "options"):
                value = self._custom(name, agent.pop(name, None))
                if value:
                    agent[name] = value
        given = self._span(
            "run", {"type": "generation", "input": data.get("input"), "output": data.get("output")}
        )
        data["input"], data["output"] = given.get("input"), given.get("output")
        for name in ("given", "earlier"):
            if not isinstance(data.get(name), bool | None):
                before = self._span(name, {"type": "generation", "input": data[name], "output": None})
                data[name] = before.get("input")
        if not isinstance(data.get("earlier"), list | tuple | None):
            self._miss(_NOT_LISTS)
            del data["earlier"]
        data |= {
            name: self._custom(name, data[name])
            for name in ("given_context", "options", "rules", "state", "error", "listings")
            if name in data
        }
        if self._missing:
            data["missing"] = self._missing
        return {name: value for name, value in data.items() if value is not None or name == "input"}

    def _model_call(self, place: int, call: dict[str, Any]) -> dict[str, Any]:
        instructions, items = call.get("instructions"), call.get("items", call.get("input"))
        given = items if isinstance(items, list) else list(items) if isinstance(items, tuple) else [items]
        first = [] if instructions is None else [{"role": "system", "content": instructions}]
        answer = call.get("answer")
        found = self._span(
            f"model_{place}",
            {
                "type": "response",
                "model": call["model"].get("model", ""),
                "input": [*first, *given],
                "output": None if answer is None else list(answer["output"]),
            },
        )
        read, output = found.get("input"), found.get("output")
        if not isinstance(read, list) or (answer is not None and not isinstance(output, list)):
            self._miss(_NOT_LISTS if found else WITHHELD)
            read, output = [], []
        if first and read:
            text = read.pop(0)
            call["instructions"] = text.get("content") if isinstance(text, Mapping) else None
        elif first:
            del call["instructions"]
        call.pop("input", None)
        call["items"] = [item for item in read if isinstance(item, Mapping)]
        if isinstance(items, str):
            del call["items"]
            call["input"] = read[0] if read and isinstance(read[0], str) else ""
        if answer is not None:
            answer["output"] = [item for item in output or () if isinstance(item, Mapping)]
        call["agent"] = self._name(call["agent"])
        for name in ("model", "settings", "tools", "handoffs", "output", "options", "context", "error"):
            if name in call:
                call[name] = self._custom(name, call[name])
        # Empty: none is known. Without the entry, it would be the agent's.
        call["context"] = call.get("context") or {}
        return {name: value for name, value in call.items() if value is not None}

    def _tool_call(self, place: int, call: dict[str, Any]) -> dict[str, Any]:
        found = self._span(
            f"tool_{place}",
            {
                "type": "function",
                "name": call["name"],
                "input": call["arguments"],
                "output": call.get("output"),
            },
        )
        arguments = found.get("input")
        if arguments != call["arguments"]:
            call["has_other_arguments"] = True
        call["arguments"] = arguments if isinstance(arguments, str) else ""
        call["output"] = found.get("output")
        call["name"] = found["name"] if isinstance(found.get("name"), str) else ""
        call["agent"] = self._name(call["agent"])
        parts = ("tool", "names", "error", "result", "failure", "received", "origin", "parameter", "decision")
        for name in parts:
            if name in call:
                call[name] = self._custom(name, call[name])
        if "rules" in call:  # without the entry, the run's rules would apply
            call["rules"] = self._custom("rules", call["rules"]) or _NO_RULES
        return {name: value for name, value in call.items() if value is not None}

    def _name(self, agent: str) -> str:
        name = self._custom("agent", agent)
        return name if isinstance(name, str) else ""

    def _custom(self, name: str, value: Any) -> Any:
        if not value:
            return value
        key = json.dumps([name, value], sort_keys=True, default=str)
        if key not in self._known:
            found = self._span(name, {"type": "custom", "name": name, "data": {name: value}})
            inner = found.get("data")
            self._known[key] = inner.get(name) if isinstance(inner, Mapping) else None
        return self._known[key]

    def _span(self, name: str, span_data: dict[str, Any]) -> Mapping[str, Any]:
        run = self._run
        span_id = f"{run.id}_{name}"
        span = {
            "object": "trace.span",
            "id": span_id,
            "trace_id": run.trace_id,
            "parent_id": None,
            "started_at": run.started_at.isoformat(),
            "ended_at": (run.started_at + timedelta(seconds=run.seconds)).isoformat(),
            "span_data": span_data,
            "error": None,
        }
        redacted = call_redact(self._redact, span, span_id)
        if redacted is None:
            self._miss(WITHHELD)
            return {}
        return redacted.get("span_data") or {}

    def _miss(self, reason: str) -> None:
        if reason not in self._missing:
            self._missing.append(reason)
