"""Builds typed values from the JSON data of a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from kantan_agents.core.items import text_of
from kantan_agents.traces.capture.calls import (
    ModelAnswer,
    ModelCallRecord,
    ModelRequest,
    OutputRequest,
    RecordedDecision,
    RecordedError,
    RuleSet,
    RunCalls,
    ToolCallRecord,
    ToolDefinition,
)
from kantan_agents.traces.capture.values import AgentRecord, PromptRecord, RunRecord, ToolListing

VERSION: Final = 1

Resolve = Callable[[int], Any]


class UnknownVersionError(ValueError):
    """A later version of this library wrote the record."""


def run_record(run_id: str, trace_id: str, data: Mapping[str, Any], resolve: Resolve) -> RunRecord:
    """Return the record of a run; raise UnknownVersionError for an unknown format.

    Damaged data raises LookupError, TypeError, ValueError, AttributeError or OverflowError.
    """
    _check_version(data)
    return _Reader(data, resolve).run(run_id, trace_id)


def model_request(data: Mapping[str, Any]) -> ModelRequest:
    """Return a request; its parts may be missing or None."""
    output, given = data.get("output"), data["input"]
    return ModelRequest(
        instructions=data.get("instructions"),
        input=given if isinstance(given, str) else tuple(given or ()),
        settings=data.get("settings") or {},
        tools=tuple(map(_tool, data.get("tools") or ())),
        handoffs=tuple(map(_tool, data.get("handoffs") or ())),
        output=None if output is None else OutputRequest(**output),
        options=data.get("options") or {},
    )


def run_calls(
    run_id: str, trace_id: str, data: Mapping[str, Any], resolve: Resolve, known: KnownContents
) -> RunCalls:
    """Return the tool calls, in a tenth of the time of ``run_record``; raise likewise.

    ``resolve`` must return the same object for the same item; all runs of a file share ``known``.
    """
    _check_version(data)
    parent_run, parent_call = data.get("parent") or (None, None)
    reader = _Reader(data, resolve, known)
    return RunCalls(
        id=run_id,
        trace_id=trace_id,
        agent=data["agent"],
        tool_calls=reader.tool_calls(),
        started_at=reader.started_at,
        parent_run=parent_run,
        parent_call=parent_call,
        missing=tuple(data.get("missing", ())),
    )


def _check_version(data: Mapping[str, Any]) -> None:
    if data["version"] > VERSION:
        raise UnknownVersionError(f"its format is {data['version']}, this version reads up to {VERSION}")


class KnownContents:
    """Caches the typed values of shared items."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, tuple[str, ...] | None], tuple[Any, Any]] = {}

    def value(self, content: Any, names: tuple[str, ...] | None, make: Callable[[], Any]) -> Any:
        """Return the cached value of an item; ``names`` are for a tool."""
        key = (id(content), names)
        found = self._made.get(key)
        if found is None:
            # Holds the item, so that its id is not reused.
            found = self._made[key] = (content, make())
        return found[1]


class _Reader:
    def __init__(self, data: Mapping[str, Any], resolve: Resolve, known: KnownContents | None = None) -> None:
        self._data = data
        self._resolve = resolve
        self._known = known or KnownContents()
        self.started_at = datetime.fromisoformat(data["started_at"]).astimezone(timezone.utc)
        self._agents: dict[str, AgentRecord] = {}
        self._rules = self._rule_set(data.get("rules"))
        self._tools: dict[str, ToolDefinition] = {}

    def tool_calls(self) -> tuple[ToolCallRecord, ...]:
        data = self._data
        if not all("tool" in call for call in data["tool_calls"]):
            for call in data["model_calls"]:
                self._tools.update((tool["name"], _tool(tool)) for tool in self._at(call.get("tools"), ()))
        return tuple(map(self._tool_call, data["tool_calls"]))

    def run(self, run_id: str, trace_id: str) -> RunRecord:
        data = self._data
        self._agents = {agent.name: agent for agent in map(self._agent, data.get("agents", ()))}
        calls = self._model_calls(data["model_calls"])
        output = data.get("output")
        if data.get("output_is_answer"):
            answers = [call.answer for call in calls if call.answer is not None]
            output = text_of_items(answers[-1].output) if answers else None
        parent_run, parent_call = data.get("parent") or (None, None)
        sent, given = self._items(data.get("input")), data.get("given")
        return RunRecord(
            id=run_id,
            trace_id=trace_id,
            agent=data["agent"],
            input=sent,
            output=output,
            error=_error(data.get("error")),
            outcome=data["outcome"],
            agents=tuple(self._agents.values()),
            rules=self._rules,
            options=data.get("options", {}),
            model_calls=tuple(calls),
            tool_calls=self.tool_calls(),
            parent_run=parent_run,
            parent_call=parent_call,
            state=data.get("state"),
            started_at=self.started_at,
            seconds=data["seconds"],
            is_streamed=data.get("is_streamed", False),
            has_session=data.get("has_session", False),
            listings=tuple(
                ToolListing(server, before_call, self._at(tools), *reason)
                for server, before_call, tools, *reason in data.get("listings", ())
            ),
            missing=tuple(data.get("missing", ())),
            inner_runs=tuple(data.get("inner_runs", ())),
            arm=data.get("arm"),
            given=sent if given is True else self._items(given),
            given_context=data.get("given_context"),
            is_nested=data.get("is_nested", False),
            earlier=self._items(data.get("earlier")),
        )

    def _at(self, found: Any, otherwise: Any = None) -> Any:
        if found is None:
            return otherwise
        return self._resolve(found) if isinstance(found, int) else found

    def _items(self, items: Any) -> Any:
        if not isinstance(items, list):
            return items
        return tuple(self._resolve(item) if isinstance(item, int) else item for item in items)

    def _agent(self, data: Mapping[str, Any]) -> AgentRecord:
        prompt = self._at(data.get("prompt"))
        return AgentRecord(
            name=data["name"],
            prompt=None if prompt is None else PromptRecord(**prompt),
            context=data.get("context", {}),
            options=self._at(data.get("options"), {}),
        )

    def _rule_set(self, found: Any) -> RuleSet:
        data = self._at(found)
        if data is None:
            return RuleSet()
        return self._known.value(data, None, lambda: _rule_set(data))  # type: ignore[no-any-return]

    def _model_calls(self, calls: Sequence[Mapping[str, Any]]) -> list[ModelCallRecord]:
        made: list[ModelCallRecord] = []
        before: tuple[Any, ...] = ()
        for data in calls:
            if "items" in data:
                # By start; the answer may belong to any call that had ended by then.
                kept = before[: data.get("kept", 0)]
                answered = self._answered(made, data)
                given: Any = (*kept, *answered, *self._items(data["items"]))
                before = given
            else:
                given = data.get("input")
            made.append(self._model_call(data, given))
        return made

    def _answered(self, made: Sequence[ModelCallRecord], data: Mapping[str, Any]) -> Sequence[Any]:
        count = data.get("answered", 0)
        return made[data["answer_of"]].answer.output[:count] if count else ()

    def _model_call(self, data: Mapping[str, Any], given: Any) -> ModelCallRecord:
        model, agent = self._at(data.get("model"), {}), data["agent"]
        answer = data.get("answer")
        output = self._at(data.get("output"))
        parts = {name: self._at(data.get(name)) for name in ("instructions", "settings", "tools", "handoffs")}
        request = model_request({**parts, "output": output, "options": data.get("options"), "input": given})
        known = self._agents.get(agent)
        return ModelCallRecord(
            agent=agent,
            provider=model.get("provider"),
            model=model.get("model", ""),
            url=model.get("url", ""),
            api=model.get("api", "other"),
            request=request,
            answer=None if answer is None else ModelAnswer(self._items(answer["output"]), **_kept(answer)),
            error=_error(data.get("error")),
            started_at=self._time(data),
            seconds=data.get("seconds", 0.0),
            is_streamed=data.get("is_streamed", False),
            is_internal=data.get("is_internal", False),
            context=data.get("context", known.context if known is not None else {}),
            parent_call=data.get("parent_call"),
            broke_off=data.get("broke_off", False),
            from_cache=data.get("from_cache", False),
            is_superseded=data.get("is_superseded", False),
        )

    def _tool_call(self, data: Mapping[str, Any]) -> ToolCallRecord:
        name, definition = data["name"], self._at(data.get("tool"))
        names = tuple(data.get("names", (name,)))
        if definition is not None:
            tool = self._known.value(definition, names, lambda: _tool({**definition, "names": names}))
        else:
            tool = self._tools.get(name) or ToolDefinition("function", name, names=names)
        return ToolCallRecord(
            call_id=data["call_id"],
            agent=data.get("agent", self._data["agent"]),
            tool=tool,
            arguments=data["arguments"],
            output=data.get("output"),
            error=_error(data.get("error")),
            result=data.get("result", data.get("output")),
            failure=_error(data.get("failure")),
            decision=_decision(data.get("decision")),
            rules=self._rule_set(data["rules"]) if "rules" in data else self._rules,
            parameter=data.get("parameter"),
            folds=data.get("folds", False),
            origin=data.get("origin"),
            received=tuple(data.get("received", ())),
            started_at=self._time(data),
            seconds=data.get("seconds", 0.0),
            has_other_arguments=data.get("has_other_arguments", False),
            parent_call=data.get("parent_call"),
            is_content=data.get("is_content", False),
        )

    def _time(self, data: Mapping[str, Any]) -> datetime:
        return self.started_at + timedelta(seconds=data["at"])


def _tool(data: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(**{**data, "names": tuple(data.get("names") or (data["name"],))})


def _decision(data: Mapping[str, Any] | None) -> RecordedDecision | None:
    return None if data is None else RecordedDecision(**{**data, "layers": tuple(data.get("layers", ()))})


def _rule_set(data: Mapping[str, Any]) -> RuleSet:
    return RuleSet(*(tuple((name, rules) for name, rules in data[kind]) for kind in ("layers", "limits")))


def _kept(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("usage", "response_id", "cut_off") if name in answer}


def _error(data: Mapping[str, Any] | None) -> RecordedError | None:
    return None if data is None else RecordedError(**data)


def text_of_items(output: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the messages among output items."""
    return "".join(text_of(item.get("content"), "") for item in output if item.get("type") == "message")
