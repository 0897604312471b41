"""The complete record of a run, as it is read from a trace database: typed values that need no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

import attrs

from kantan_agents.capture.canonical import content_hash

JSONValue: TypeAlias = "str | int | float | bool | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
"""Any value that JSON has."""

Items: TypeAlias = "str | Sequence[Mapping[str, JSONValue]]"
"""The input of a run or of a model: a text, or the SDK's input items."""


@attrs.frozen
class RecordedError:
    """How a run or a call has failed.

    Attributes:
        type: Name of the exception's class.
        message: Its message.
        code: Its code, if it is an error of this library.
        status: The HTTP status that a provider has answered with, if any.
    """

    type: str
    message: str
    code: str | None = None
    status: int | None = None


@attrs.frozen
class PromptRecord:
    """One version of a prompt.

    Attributes:
        id: ``prompt_id`` of the traces.
        name: Its name; the agent's name for instructions that are a plain text.
        version: Its version; None for a plain text.
        text: The template.
        meta: Its meta data.
        is_literal: Whether its markers are not filled.
        is_strict: Whether a marker without a value is an error.
    """

    id: str
    name: str
    version: str | None
    text: str
    meta: Mapping[str, JSONValue] = attrs.field(factory=dict)
    is_literal: bool = False
    is_strict: bool = False


@attrs.frozen
class ToolDefinition:
    """A tool as a model was offered it.

    Attributes:
        kind: ``"function"``, ``"handoff"``, or the name of another kind, such as ``"web_search"``.
        name: Name that the model sees.
        description: What the model reads about it.
        parameters: JSON Schema of the parameters; None if the tool has none of its own.
        is_strict: Whether the provider enforces the schema.
        server: Name of the MCP server that offers it; None for another tool.
        name_on_server: The server's own name for it.
        names: All names by which rules know it.
        options: Everything else that is sent for it.
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
    """What the rules have decided about a tool call.

    Attributes:
        is_allowed: Whether the call was allowed.
        rule: The deciding rule, such as ``"deny: fs.*"``; None if no rule was about the tool.
        layers: The layers or the limit that have this rule, the winning one last.
        code: Code of the error of a refused call.
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
        arguments: The arguments as the model wrote them, JSON text for a function tool.
        output: What the model got back, as JSON data; None if it got nothing.
        error: The error that the call has raised. If it took too long, the model got an output as well.
        result: What the tool itself has returned, as JSON data: ``output`` unless a middleware changed it.
        failure: The error that the tool itself has raised, also if the model got a text about it.
        decision: What the rules have decided; None if the call ended before they were asked.
        rules: The rules in force at that moment.
        parameter: The parameter that ``Tool(param pattern)`` rules are matched with.
        folds: Whether equivalent spellings of this parameter count as equal, as for names of agents.
        origin: For the tool of an MCP server, the names by which ``allow`` may cover it.
        received: The arguments that the tool's function receives, in each way to read them, if they differ
            from those that the model wrote. If the function cannot receive them and the schema has defaults,
            those that the model wrote.
        started_at: When the call began, in UTC.
        seconds: How long it took.
        has_other_arguments: Whether the rules saw other arguments than these: a middleware has replaced them,
            or something in them was redacted.
        parent_call: Id of the tool call of the run inside which the call was made, as by an agent that is a
            tool.
        is_content: Whether the tool has returned content objects of the SDK, not dicts of the same shape.
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
class AgentRecord:
    """One agent that took part in a run.

    Attributes:
        name: Its name.
        prompt: Its prompt.
        context: The context values that the prompt's template has read, by path. If a value has changed
            during the run, its first one.
        options: The options of the agent that shape requests.
    """

    name: str
    prompt: PromptRecord | None = None
    context: Mapping[str, JSONValue] = attrs.field(factory=dict)
    options: Mapping[str, JSONValue] = attrs.field(factory=dict)


@attrs.frozen
class ToolListing:
    """What an MCP server has listed.

    Attributes:
        server: Name of the server.
        before_call: Number of model calls of the run that had begun by then.
        tools: The tools as the protocol has them; None if the server could not be used.
        reason: Why it could not be used.
    """

    server: str
    before_call: int
    tools: Sequence[Mapping[str, JSONValue]] | None
    reason: str | None = None


@attrs.frozen
class RunRecord:
    """The complete record of one run.

    Attributes:
        id: ``agent_run_id`` of the run.
        trace_id: Id of its trace.
        agent: Name of the agent that was run.
        input: The user's input; None for a run that was resumed from a stored state.
        output: The final output as JSON data; None if there is none.
        error: The error that ended the run.
        outcome: ``"finished"``, ``"failed"``, ``"cancelled"``, or ``"stopped"`` if the reader of its stream
            has ended it after a turn.
        agents: The agents that took part, the one that was run first.
        rules: The tool rules in force when the run began.
        options: The caller's options of the run, such as ``max_turns``, as far as they are JSON data.
        model_calls: The model calls in the order in which they began.
        tool_calls: The tool calls in the order in which they began.
        parent_run: Id of the run inside which this one began.
        parent_call: Id of the tool call inside which this one began.
        state: The stored state that the run was resumed from; None for a new run.
        started_at: When the run began, in UTC.
        seconds: How long it took.
        is_streamed: Whether the run was streamed.
        has_session: Whether it had a session, whose items are in the input of its first model call.
        listings: What its MCP servers have listed, whenever that had changed.
        missing: What could not be recorded; empty if the record is complete.
        inner_runs: Ids of the runs of the same trace that began inside this one, each with its own record.
    """

    id: str
    trace_id: str
    agent: str
    input: Items | None
    output: JSONValue
    error: RecordedError | None
    outcome: str
    agents: Sequence[AgentRecord]
    rules: RuleSet
    options: Mapping[str, JSONValue]
    model_calls: Sequence[ModelCallRecord]
    tool_calls: Sequence[ToolCallRecord]
    parent_run: str | None
    parent_call: str | None
    state: Mapping[str, JSONValue] | None
    started_at: datetime
    seconds: float
    is_streamed: bool = False
    has_session: bool = False
    listings: Sequence[ToolListing] = ()
    missing: Sequence[str] = ()
    inner_runs: Sequence[str] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything that a replay needs is recorded."""
        return not self.missing
