"""The complete record of a run: typed values that need no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs

from kantan_agents.traces.capture.calls import (
    Items,
    JSONValue,
    ModelCallRecord,
    RecordedError,
    RuleSet,
    ToolCallRecord,
)


@attrs.frozen
class PromptRecord:
    """One version of a prompt.

    Attributes:
        id: ``prompt_id`` of the traces.
        name: Its name; the agent's name for plain str instructions.
        version: Its version; None for plain str instructions.
        text: The template.
        meta: Its metadata.
        is_literal: Whether its placeholders are not filled.
        is_strict: Whether a placeholder without a value is an error.
    """

    id: str
    name: str
    version: str | None
    text: str
    meta: Mapping[str, JSONValue] = attrs.field(factory=dict)
    is_literal: bool = False
    is_strict: bool = False


@attrs.frozen
class AgentRecord:
    """One agent that took part in a run.

    Attributes:
        name: Its name.
        prompt: Its prompt.
        context: The context values that the prompt's template read, by path. For a value that changed during
            the run, its first one.
        options: The options of the agent that shape requests.
    """

    name: str
    prompt: PromptRecord | None = None
    context: Mapping[str, JSONValue] = attrs.field(factory=dict)
    options: Mapping[str, JSONValue] = attrs.field(factory=dict)


@attrs.frozen
class ToolListing:
    """A listing of an MCP server.

    Attributes:
        server: Name of the server.
        before_call: Number of model calls of the run that had started by then.
        tools: The tools in the protocol's form; None if the server could not be used.
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
        agent: Name of the agent of the run.
        input: The user's input after the run's middleware. None for a run that was resumed from a stored
            state.
        output: The final output as JSON data; None if it is missing.
        error: The error that the run failed with.
        outcome: ``"finished"``, ``"failed"``, ``"cancelled"``, or ``"stopped"`` if the reader of its stream
            stopped it after a turn.
        agents: The agents that took part, the first one of the run first.
        rules: The tool rules in force when the run started.
        options: The caller's options of the run, such as ``max_turns``, if they are JSON data.
        model_calls: The model calls in the order of their starts.
        tool_calls: The tool calls in the order of their starts.
        parent_run: Id of the run inside which this one started.
        parent_call: Id of the tool call inside which this one started.
        state: The stored state that the run was resumed from; None for a new run.
        started_at: Start of the run, in UTC.
        seconds: Its duration.
        is_streamed: Whether the run was streamed.
        has_session: Whether it had a session, whose items are in the input of its first model call.
        listings: The listings of its MCP servers, one for each change.
        missing: Descriptions of missing parts; empty if the record is complete.
        inner_runs: Ids of the runs of the same trace that started inside this one, each with its own record.
        arm: Name of its arm, if a ``Rollout`` chose one.
        given: The user's input before any middleware; None if it is not recorded, as by earlier versions. A
            replay starts with it.
        given_context: The context values that the prompts of its agents and of delegated runs read, before
            the run started; None if they are equal to the values of ``agents``.
        is_nested: Whether it started inside another run or span, so that its input is not a command.
        earlier: The earlier items of its session; None if its first request has them before its input, as
            without middleware, callbacks and filters that change it.
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
    arm: str | None = None
    given: Items | None = None
    given_context: Mapping[str, JSONValue] | None = None
    is_nested: bool = False
    earlier: Items | None = None

    @property
    def begins_with(self) -> Items | None:
        """The input for a replay of this run; None as for ``input``."""
        return self.input if self.given is None else self.given

    @property
    def is_complete(self) -> bool:
        """Whether everything that a replay needs is recorded."""
        return not self.missing
