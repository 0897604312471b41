"""Recorded calls of models and tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from kantan_agents.core.answers import CUT_OFF, FinishReason, finish_reason_of
from kantan_agents.traces.capture.canonical import content_hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    JSONValue: TypeAlias = "str | int | float | bool | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
    """Any JSON value."""

    Items: TypeAlias = "str | Sequence[Mapping[str, JSONValue]]"
    """The input of a run or of a model: a str, or the SDK's input items."""
else:
    # At run time Any: readers of damaged files do not check JSON data.
    JSONValue = Items = Any


@attrs.frozen
class RecordedError:
    """The error of a run or a call.

    Attributes:
        type: Name of the exception's class.
        message: Its message.
        code: Its code, if it is an error of this library.
        status: The HTTP status of the provider's response, if any.
    """

    type: str
    message: str
    code: str | None = None
    status: int | None = None


@attrs.frozen
class ToolDefinition:
    """A tool as offered to a model.

    Attributes:
        kind: ``"function"``, ``"handoff"``, or the name of another kind, such as ``"web_search"``.
        name: Name that the model sees.
        description: Description that the model sees.
        parameters: JSON Schema of the parameters; None if the tool has no schema.
        is_strict: Whether the provider enforces the schema.
        server: Name of the MCP server that offers it; None for another tool.
        name_on_server: The server's own name for it.
        names: All names by which rules know it.
        options: All other options sent for it.
    """

    kind: str
    name: str
    description: str = ""
    parameters: Mapping[str, JSONValue] | None = None
    is_strict: bool = False
    server: str | None = None
    name_on_server: str | None = None
    names: Sequence[str] = ()
    options: Mapping[str, JSONValue] = attrs.field(factory=dict)


@attrs.frozen
class RuleSet:
    """The tool rules in force: layers, of which the later ones win, and limits on them.

    Attributes:
        layers: Each layer's name with its rules in the public shape ``{"allow", "deny", "params"}``.
        limits: Each limit's name with its rules.
    """

    layers: Sequence[tuple[str, Mapping[str, JSONValue]]] = ()
    limits: Sequence[tuple[str, Mapping[str, JSONValue]]] = ()


@attrs.frozen
class RecordedDecision:
    """The decision of the rules about a tool call.

    Attributes:
        is_allowed: Whether the call was allowed.
        rule: The deciding rule, such as ``"deny: fs.*"``; None if no rule was about the tool.
        layers: The layers or the limit that have this rule, the winning one last.
        code: Error code of a denied call.
    """

    is_allowed: bool
    rule: str | None = None
    layers: Sequence[str] = ()
    code: str | None = None


@attrs.frozen
class ToolCallRecord:
    """One call of a tool by a model.

    Attributes:
        call_id: The model's id of the call.
        agent: Name of the agent whose model made the call.
        tool: The tool.
        arguments: The arguments as the model wrote them, a JSON str for a function tool.
        output: The model's result of the call, as JSON data; None if it got nothing.
        error: The error that the call raised. After a timeout, the model got an output as well.
        result: The tool's own result, as JSON data: ``output`` unless a middleware changed it.
        failure: The tool's own error, even if the model got a message about it.
        decision: The decision of the rules; None if the call ended before it.
        rules: The rules in force at that moment.
        parameter: The parameter that ``Tool(param pattern)`` rules are matched with.
        folds: Whether equivalent spellings of this parameter count as equal, as for names of agents.
        origin: For the tool of an MCP server, the names by which ``allow`` may cover it.
        received: The arguments that the tool's function receives, in each way to read them, if they differ
            from the model's. If the function cannot receive them and the schema has defaults, the model's.
        started_at: Start of the call, in UTC.
        seconds: Its duration.
        has_other_arguments: Whether the rules saw other arguments than these: a middleware replaced them, or
            something in them was redacted.
        parent_call: Id of the surrounding run's tool call that made this call, as by an agent that is a tool.
        is_content: Whether the tool returned content objects of the SDK, not dicts of the same shape.
    """

    call_id: str
    agent: str
    tool: ToolDefinition
    arguments: str
    output: JSONValue
    error: RecordedError | None
    result: JSONValue
    failure: RecordedError | None
    decision: RecordedDecision | None
    rules: RuleSet
    parameter: str | None
    folds: bool
    origin: Mapping[str, JSONValue] | None
    received: Sequence[Mapping[str, JSONValue]]
    started_at: datetime
    seconds: float
    has_other_arguments: bool = False
    parent_call: str | None = None
    is_content: bool = False


@attrs.frozen
class OutputRequest:
    """The structured output that a model call requested.

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
    """A request to a model.

    Attributes:
        instructions: The rendered instructions.
        input: The conversation so far.
        settings: The model settings that were set.
        tools: The tools in the order shown.
        handoffs: The handoffs, each as the tool that the model sees.
        output: The requested structured output; None for plain text.
        options: ``previous_response_id``, ``conversation_id`` and ``prompt``, if they were set. ``provider``
            has the fields that a ``Provider`` itself adds to each request.
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
    """The answer of a model.

    Attributes:
        output: The output items, in the SDK's form.
        usage: Tokens and requests by kind.
        response_id: The provider's id of the response.
        cut_off: Why it was cut off, ``"length"`` or ``"content_filter"``; None if it is complete, or if only
            its items show it.
    """

    output: Sequence[Mapping[str, JSONValue]]
    usage: Mapping[str, JSONValue] = attrs.field(factory=dict)
    response_id: str | None = None
    cut_off: FinishReason | None = None

    @property
    def finish_reason(self) -> FinishReason:
        """Why it has ended: ``"stop"``, ``"tool_call"``, ``"length"`` or ``"content_filter"``."""
        return self.cut_off or finish_reason_of(self.output)

    @property
    def answer_cut_off(self) -> bool:
        """Whether it was cut off, so that its end is missing."""
        return self.finish_reason in CUT_OFF


@attrs.frozen
class ModelCallRecord:
    """One request to a model, and its answer or error. Each retry is a separate call.

    Attributes:
        agent: Name of the agent that made the call.
        provider: Name of the provider, if it is known.
        model: Name of the model.
        url: URL of the provider's API, or a name for the class of the model.
        api: ``"responses"``, ``"chat completions"``, or ``"other"``.
        request: The request.
        answer: The answer; None if the call failed.
        error: The error; None if there is an answer.
        started_at: When the request was sent, in UTC.
        seconds: Its duration.
        is_streamed: Whether the answer was streamed.
        is_internal: Whether a middleware made the call for its own purposes.
        context: The context values that the instructions template read, by path.
        parent_call: Id of the surrounding run's tool call that made this call, as by an agent that is a tool.
        broke_off: Whether it failed after a part of the answer was streamed, which is not recorded.
        from_cache: Whether the answer came from ``Cache``, without a call of the model.
        is_superseded: Whether it was stopped because another request for the same answer was faster.
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


@attrs.frozen
class RunCalls:
    """The tool calls of one run: enough of its record to evaluate rules.

    Attributes:
        id: ``agent_run_id`` of the run.
        trace_id: Id of its trace.
        agent: Name of the agent of the run.
        tool_calls: The tool calls in the order of their starts.
        started_at: Start of the run, in UTC.
        parent_run: Id of the run inside which this one started.
        parent_call: Id of the tool call inside which this one started.
        missing: Descriptions of missing parts; empty if the record is complete.
    """

    id: str
    trace_id: str
    agent: str
    tool_calls: Sequence[ToolCallRecord]
    started_at: datetime
    parent_run: str | None = None
    parent_call: str | None = None
    missing: Sequence[str] = ()


@attrs.frozen
class TraceCalls:
    """The tool calls of the runs in one trace.

    Attributes:
        trace_id: Id of the trace.
        runs: The runs in the order of their starts, including runs inside other runs.
        missing: Descriptions of missing records; empty if all of its runs are recorded completely.
    """

    trace_id: str
    runs: Sequence[RunCalls]
    missing: Sequence[str] = ()
