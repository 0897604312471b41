"""A finished run as an answer of the protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.result import RunResultBase
from pydantic_core import to_jsonable_python

from kantan_agents.errors import InvalidOptionError
from kantan_agents.protocol.json_data import flaw
from kantan_agents.protocol.run_ids import run_id_of
from kantan_agents.protocol.translate.openai_responses import read_messages
from kantan_agents.protocol.translate.responses_items import arguments_of
from kantan_agents.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.structured import as_dict


def to_provider_response(run_result: RunResultBase | Mapping[str, Any]) -> ProviderResponse:
    """Return what a run came to as an answer of the protocol: so an agent can be a provider of another.

    The segments are those of the final answer, in order: texts, and the media and ``ui`` a provider gave. An
    output of an ``output_type`` is one text segment of JSON. Calls that the run has made are no segments,
    or whoever reads the answer would make them again; they stand in the metadata.

    Args:
        run_result: A finished ``RunResult``, or the context of a run, which has it as ``"result"``.

    Raises:
        InvalidOptionError: E75, it is neither, or the run is not finished.

    Returns:
        The answer, its metadata ``{"usage": {"requests", "input_tokens", "output_tokens", "total_tokens",
        "cached_tokens", "reasoning_tokens"}, "agent": name of the agent that answered, "model": name of its
        model, "run_id": id of the run, "tool_calls": [{"id", "name", "args"}, ...]}``; ``model`` and
        ``run_id`` only where they are known.
    """
    result = run_result.get("result") if isinstance(run_result, Mapping) else run_result
    if not isinstance(result, RunResultBase):
        reason = f"must be a RunResult, or a context that has one, not {type(run_result).__name__}"
        raise InvalidOptionError(option="run_result", reason=reason)
    if not getattr(result, "is_complete", True) or getattr(result, "interruptions", None):
        reason = "must be that of a finished run; this one is still on its way, or waits for an approval"
        raise InvalidOptionError(option="run_result", reason=reason)
    return ProviderResponse(_segments(result), _metadata(result))


def _segments(result: RunResultBase) -> list[ContentSegment]:
    output = result.final_output
    if not isinstance(output, str):
        return [ContentSegment.of_text(_json(output))]
    said = _last_answer(result)
    # A tool may have given the output, a guardrail or a hook may have replaced it.
    if "".join(segment.text or "" for segment in said).endswith(output):
        return said
    return [ContentSegment.of_text(output)] if output else []


def _last_answer(result: RunResultBase) -> list[ContentSegment]:
    items = result.raw_responses[-1].output if result.raw_responses else []
    messages = [item for item in items if getattr(item, "type", None) == "message"]
    found = read_messages(messages[-1:], keeps=False)
    return [segment for message in found for segment in message.segments]


def _json(output: Any) -> str:
    plain = as_dict(output)
    try:
        data = to_jsonable_python(
            output if plain is None else plain, fallback=str, inf_nan_mode="null", bytes_mode="base64"
        )
    except ValueError:  # it contains itself
        data = str(output)
    return json.dumps(data, ensure_ascii=False)


def _metadata(result: RunResultBase) -> dict[str, Any]:
    usage = result.context_wrapper.usage
    metadata: dict[str, Any] = {
        "usage": {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "cached_tokens": usage.input_tokens_details.cached_tokens or 0,
            "reasoning_tokens": usage.output_tokens_details.reasoning_tokens or 0,
        },
        "agent": result.last_agent.name,
        "model": _model_name(getattr(result.last_agent, "model", None)),
        "run_id": run_id_of(result),
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
            if getattr(item, "type", None) == "function_call":
                args = arguments_of(getattr(item, "arguments", ""))
                args = str(args) if flaw(args) else args
                calls.append(
                    {"id": getattr(item, "call_id", ""), "name": getattr(item, "name", ""), "args": args}
                )
    return calls
