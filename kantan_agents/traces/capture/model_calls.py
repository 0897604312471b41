"""A recorded model call: what was asked for, and what the model has answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property

import attrs

from kantan_agents.traces.capture.canonical import content_hash
from kantan_agents.traces.capture.json_values import Items, JSONValue
from kantan_agents.traces.capture.recorded_errors import RecordedError
from kantan_agents.traces.capture.tool_calls import ToolDefinition


@attrs.frozen
class OutputRequest:
    """The structured output that a model call asked for.

    Attributes:
        name: Name of the output type.
        schema: Its JSON Schema.
        mode: The form of the request: ``"native"``, ``"tool"`` or ``"prompt"``.
        is_strict: Whether the provider enforces the schema.
    """

    name: str
    schema: Mapping[str, JSONValue]
    mode: str
    is_strict: bool = False


@attrs.frozen(slots=False)
class ModelRequest:
    """What was sent to a model.

    Attributes:
        instructions: The rendered instructions.
        input: The conversation so far.
        settings: The model settings that were set.
        tools: The tools in the order shown.
        handoffs: The hand-offs, each as the tool that the model sees.
        output: The structured output that was asked for; None for a text.
        options: ``previous_response_id``, ``conversation_id`` and ``prompt``, if they were set. ``provider``
            has what a ``Provider`` adds to each request by itself.
    """

    instructions: str | None
    input: Items
    settings: Mapping[str, JSONValue] = attrs.field(factory=dict)
    tools: Sequence[ToolDefinition] = ()
    handoffs: Sequence[ToolDefinition] = ()
    output: OutputRequest | None = None
    options: Mapping[str, JSONValue] = attrs.field(factory=dict)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the request as 64 hexadecimal digits; equal requests have equal hashes."""
        return content_hash(attrs.asdict(self))


@attrs.frozen
class ModelAnswer:
    """What a model has answered.

    Attributes:
        output: The output items, as the SDK has them.
        usage: Tokens and requests by kind.
        response_id: The provider's id of the response.
    """

    output: Sequence[Mapping[str, JSONValue]]
    usage: Mapping[str, JSONValue] = attrs.field(factory=dict)
    response_id: str | None = None


@attrs.frozen
class ModelCallRecord:
    """One request to a model, and its answer or error. Each attempt of a retry is a call of its own.

    Attributes:
        agent: Name of the agent that made the call.
        provider: Name of the provider, if it is known.
        model: Name of the model.
        url: URL of the provider's API, or a text that identifies the class of the model.
        api: ``"responses"``, ``"chat completions"``, or ``"other"``.
        request: The request.
        answer: The answer; None if the call has failed.
        error: The error; None if there is an answer.
        started_at: When the request was sent, in UTC.
        seconds: How long it took.
        is_streamed: Whether the answer was streamed.
        is_internal: Whether a middleware made the call for its own purposes.
        context: The context values that the template of the instructions has read, by path.
        parent_call: Id of the tool call of the run inside which the call was made, as by an agent that is a
            tool.
        broke_off: Whether it failed after a part of the answer was streamed, which is not recorded.
        from_cache: Whether ``Cache`` has given the answer, and no model was asked.
        is_superseded: Whether it was ended because another request for the same answer was faster.
    """

    agent: str
    provider: str | None
    model: str
    url: str
    api: str
    request: ModelRequest
    answer: ModelAnswer | None
    error: RecordedError | None
    started_at: datetime
    seconds: float
    is_streamed: bool = False
    is_internal: bool = False
    context: Mapping[str, JSONValue] = attrs.field(factory=dict)
    parent_call: str | None = None
    broke_off: bool = False
    from_cache: bool = False
    is_superseded: bool = False
