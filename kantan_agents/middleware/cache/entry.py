"""Keys of requests, and stored answers."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
import msgspec
from agents import FunctionTool, Model, ModelResponse

from kantan_agents.agent.bridge.captured.definitions import GENERATED_CACHE_KEY, jsonable
from kantan_agents.agent.bridge.captured.request_data import OPTIONS, unredacted_request
from kantan_agents.agent.bridge.model_answers import is_cut_off
from kantan_agents.core.interception import ModelCall, redacted_data
from kantan_agents.middleware.cache.recipient import recipient_of
from kantan_agents.middleware.keys import Key
from kantan_agents.models.structured.requests.agent_output import AgentOutput
from kantan_agents.models.structured.requests.reading import final_text
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.capture import ModelAnswer
from kantan_agents.traces.capture.canonical import digest

VERSION: Final = 2
"""Part of each key; increase it when keys change."""

_PARTS: Final = (*OPTIONS, "handoffs", "output_schema", "tracing")
# The fields that the tool's description covers, and those that only the SDK reads.
_OF_TOOL: Final = frozenset(
    {
        "allowed_callers",
        "defer_loading",
        "description",
        "is_enabled",
        "name",
        "needs_approval",
        "output_json_schema",
        "params_json_schema",
        "strict_json_schema",
        "timeout_behavior",
        "timeout_seconds",
        "tool_input_guardrails",
        "tool_output_guardrails",
    }
)
_PROMPT_KEY: Final = "prompt_cache_key"

# Unlike the encoder of records, it raises for values that JSON does not have: their repr may be ambiguous.
_encode: Final = msgspec.json.Encoder(enc_hook=jsonable, order="sorted").encode


def request_key(call: ModelCall, request: Request, model: Model, tenant: Key) -> str:
    """Return the key of a request, 64 hexadecimal digits.

    Raises:
        TypeError, ValueError, OverflowError, RecursionError: A part has no JSON form.
    """
    asked = unredacted_request(call, request, model)
    asked["settings"] = _without_generated(asked["settings"])
    asked["options"] = [asked["options"], _further_options(request), [*map(_further_fields, request.tools)]]
    whose = [VERSION, type(tenant).__name__, str(tenant)]
    return digest(_encode([whose, recipient_of(model), asked])).hex()


def _further_options(request: Request) -> dict[str, Any]:
    return {
        name: value for name, value in request.options.items() if value is not None and name not in _PARTS
    }


def _further_fields(tool: Any) -> dict[str, Any]:
    """A later SDK may add fields and send them."""
    fields = vars(tool) if isinstance(tool, FunctionTool) else {}
    return {
        name: value
        for name, value in fields.items()
        if not (name.startswith("_") or name in _OF_TOOL or value is None or callable(value))
    }


def _without_generated(settings: dict[str, Any]) -> dict[str, Any]:
    arguments: Any = settings.get("extra_args")
    key = arguments.get(_PROMPT_KEY) if isinstance(arguments, dict) else None
    if not isinstance(key, str) or not key.startswith(GENERATED_CACHE_KEY):
        return settings
    left = {name: value for name, value in arguments.items() if name != _PROMPT_KEY}
    return {**settings, "extra_args": left or None}


_DIGEST: Final = 16

# A provider-side call may have had side effects, which a stored answer would only claim.
_ACTED: Final = ("mcp_call", "mcp_approval_request", "code_interpreter_call")


@attrs.frozen
class StoredAnswer:
    """A stored answer. Its usage is zero; ``tokens`` is the original usage. ``stored_at`` is Unix time."""

    answer: ModelAnswer
    stored_at: float
    tokens: int


def why_not_stored(call: ModelCall, answer: ModelResponse) -> str | None:
    """None if it is complete and valid."""
    items = answer.output
    if not call._was_sent:
        return "no model was asked"
    if not items:
        return "it is empty"
    if any(getattr(item, "status", None) not in (None, "completed") for item in items):
        return "it is not complete"
    if is_cut_off(answer, getattr(call.settings, "max_tokens", None)):
        return "it has reached max_tokens"
    if any(getattr(item, "type", None) in _ACTED for item in items):
        return "the provider has run a tool"
    if any(_refuses(item) for item in items):
        return "the model refused to answer"
    schema = call.options.get("output_schema")
    if isinstance(schema, AgentOutput):
        text = final_text(items)
        if text is not None and not schema.accepts(text):
            return "it does not fit the output type"
    return None


def _refuses(item: Any) -> bool:
    return any(getattr(part, "type", None) == "refusal" for part in getattr(item, "content", None) or ())


def packed(key: str, call: ModelCall, answer: ModelResponse, now: float) -> bytes | None:
    """Return the stored form; None without a JSON form.

    None for an answer with something to redact: in another run, the placeholder would have another value.
    """
    tokens = answer.usage.total_tokens
    data = {"response_id": answer.response_id, "at": now, "tokens": tokens if isinstance(tokens, int) else 0}
    try:
        output = [_item(item) for item in answer.output]
        body = json.dumps({**data, "output": output}, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        return None
    if redacted_data(call.run, output) != output:
        return None
    return digest(key.encode() + body)[:_DIGEST] + body


def unpacked(key: str, stored: bytes) -> StoredAnswer:
    """Read the stored form.

    Raises:
        ValueError, TypeError, KeyError: It is damaged, or has another key.
    """
    checksum, body = stored[:_DIGEST], stored[_DIGEST:]
    if digest(key.encode() + body)[:_DIGEST] != checksum:
        raise ValueError("its checksum is wrong")
    data = json.loads(body)
    answer = ModelAnswer(data["output"], {}, data["response_id"])
    return StoredAnswer(answer, float(data["at"]), int(data["tokens"]))


def _item(item: Any) -> Any:
    # Through JSON, so that the compared and stored data is the data that is read.
    dump = getattr(item, "model_dump", None)
    return item if dump is None else dump(mode="json", exclude_unset=True, warnings=False)
