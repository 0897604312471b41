"""``to_provider_response``, and ids of results' runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.result import RunResultBase

from kantan_agents.core.items import is_call
from kantan_agents.core.usage import NO_USAGE, usage_numbers
from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.finish_reasons import finish_reason
from kantan_agents.models.protocol.json_data import find_problem
from kantan_agents.models.protocol.translate.openai_responses.items import arguments_of
from kantan_agents.models.protocol.translate.openai_responses.messages import read_messages
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.models.structured import json_data

_RUN_ID = "kantan_run_id"


def set_run_id(result: Any, run_id: str) -> None:
    """Store the run's id on its result."""
    try:
        setattr(result, _RUN_ID, run_id)
    except AttributeError:
        return  # a custom runner may return any object


def run_id_of(result: Any) -> str | None:
    """Return the id of a result's run."""
    return getattr(result, _RUN_ID, None)


def to_provider_response(run_result: RunResultBase | Mapping[str, Any]) -> ProviderResponse:
    """Return the result of a finished run as a ``ProviderResponse``, so that an agent can act as a provider.

    The segments are the final answer, in order: text, and the media and ``ui`` that a provider returned. An
    output of an ``output_type`` becomes a single text segment of JSON. The run's tool calls are only in the
    metadata, because a consumer would execute them again.

    Args:
        run_result: A finished ``RunResult``, or the context of a run, with the result under ``"result"``.

    Raises:
        InvalidOptionError: E75, it is neither, or the run has not finished.

    Returns:
        The response. Its metadata is ``{"usage": {"requests", "input_tokens", "output_tokens",
        "total_tokens", "cached_tokens", "reasoning_tokens"}, "agent": name of the last agent, "model": name
        of its model, "run_id": id of the run, "finish_reason": why its answer ended, "tool_calls": [{"id",
        "name", "args"}, ...]}``, without unknown values.
    """
    result = run_result.get("result") if isinstance(run_result, Mapping) else run_result
    if not isinstance(result, RunResultBase):
        reason = f"must be a RunResult, or a context that has one, not {type(run_result).__name__}"
        raise InvalidOptionError(option="run_result", reason=reason)
    if not getattr(result, "is_complete", True) or getattr(result, "interruptions", None):
        reason = (
            "must be the result of a finished run; this run is still in progress or waits for an approval"
        )
        raise InvalidOptionError(option="run_result", reason=reason)
    return ProviderResponse(_segments(result), _metadata(result))


def _segments(result: RunResultBase) -> list[ContentSegment]:
    output = result.final_output
    if not isinstance(output, str):
        return [ContentSegment.of_text(json.dumps(json_data(output), ensure_ascii=False))]
    segments = _last_answer(result)
    # A tool, guardrail or hook may have made the output.
    if "".join(segment.text or "" for segment in segments).endswith(output):
        return segments
    return [ContentSegment.of_text(output)] if output else []


def _last_answer(result: RunResultBase) -> list[ContentSegment]:
    items = result.raw_responses[-1].output if result.raw_responses else []
    messages = [item for item in items if getattr(item, "type", None) == "message"]
    found = read_messages(messages[-1:], keep_unknown=False)
    return [segment for message in found for segment in message.segments]


def _metadata(result: RunResultBase) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "usage": {**NO_USAGE, **usage_numbers(result.context_wrapper.usage)},
        "agent": result.last_agent.name,
        "model": _model_name(getattr(result.last_agent, "model", None)),
        "run_id": getattr(result, _RUN_ID, None),
        "finish_reason": finish_reason(result),
        "tool_calls": _calls(result),
    }
    return {name: value for name, value in metadata.items() if value is not None}


def _model_name(model: Any) -> str | None:
    for name in (model, getattr(model, "model", None), getattr(model, "name", None)):
        if isinstance(name, str):
            return name
    return None


def _calls(result: RunResultBase) -> list[dict[str, Any]]:
    calls = []
    for response in result.raw_responses:
        for item in response.output:
            if is_call(item):
                args = arguments_of(getattr(item, "arguments", ""))
                args = str(args) if find_problem(args) else args
                calls.append(
                    {"id": getattr(item, "call_id", ""), "name": getattr(item, "name", ""), "args": args}
                )
    return calls
