"""A recorded tool call: the tool as the model knew it, and what the rules have decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs

from kantan_agents.traces.capture.json_values import JSONValue
from kantan_agents.traces.capture.recorded_errors import RecordedError


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
