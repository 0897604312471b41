"""The events of a run as a whole, and of rollouts."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs

from kantan_agents.core.answers import CUT_OFF, FinishReason
from kantan_agents.core.events.base import EventBase, Outcome


@attrs.frozen(kw_only=True)
class RunStarted(EventBase):
    """A run has started.

    Attributes:
        trace_id: Id of the trace that records the run; None without tracing.
    """

    type: ClassVar[Literal["run_started"]] = "run_started"

    trace_id: str | None


@attrs.frozen(kw_only=True)
class RunFinished(EventBase):
    """A run has ended without an error, waits for an approval, or was stopped after a turn.

    Attributes:
        seconds: How long it took.
        output: The final output; a structured output as a dict.
        usage: ``requests``, ``input_tokens``, ``output_tokens`` and ``total_tokens`` of the run, and
            ``requests_without_usage``, for which the provider sent no tokens. Agents used as tools and
            subagents are not counted; their own events have their usage.
        waits_for_approval: Whether the run waits for an approval and has to be resumed.
        stopped: Whether ``RunStream.cancel(mode="after_turn")`` stopped it before the answer.
        finish_reason: Why the last answer of the model ended, as in ``ModelCallFinished``; None without an
            answer.
    """

    type: ClassVar[Literal["run_finished"]] = "run_finished"

    seconds: float
    output: Any
    usage: dict[str, int]
    waits_for_approval: bool
    stopped: bool = False
    finish_reason: FinishReason | None = None

    @property
    def answer_cut_off(self) -> bool:
        """Whether the last answer of the model was cut off, so that its end is missing."""
        return self.finish_reason in CUT_OFF


@attrs.frozen(kw_only=True)
class RunFailed(EventBase):
    """A run has ended with an error.

    Attributes:
        seconds: How long it took.
        error_type: Name of the exception's class.
        code: E-code of the exception; None unless it is a ``KantanAgentsError``.
        message: Text of the exception.
    """

    type: ClassVar[Literal["run_failed"]] = "run_failed"

    seconds: float
    error_type: str
    code: str | None
    message: str


@attrs.frozen(kw_only=True)
class RunCancelled(EventBase):
    """A run was canceled.

    Attributes:
        seconds: How long it took.
    """

    type: ClassVar[Literal["run_cancelled"]] = "run_cancelled"

    seconds: float


@attrs.frozen(kw_only=True)
class StageEntered(EventBase):
    """A stage of the pipeline has started.

    Attributes:
        stage: Its name in the pipeline.
    """

    type: ClassVar[Literal["stage_entered"]] = "stage_entered"

    stage: str


@attrs.frozen(kw_only=True)
class StageLeft(EventBase):
    """A stage of the pipeline has ended.

    Attributes:
        stage: Its name in the pipeline.
        seconds: How long it took, including everything inside its ``call_next``.
        outcome: How it ended: ``"finished"``, ``"failed"`` or ``"cancelled"``.
    """

    type: ClassVar[Literal["stage_left"]] = "stage_left"

    stage: str
    seconds: float
    outcome: Outcome


@attrs.frozen(kw_only=True)
class HandedOff(EventBase):
    """The run continues with another agent.

    Attributes:
        to_agent: Name of the agent that takes over; ``agent`` is the one that handed off.
    """

    type: ClassVar[Literal["handed_off"]] = "handed_off"

    to_agent: str


@attrs.frozen(kw_only=True)
class Delegated(EventBase):
    """Another run is about to start inside this one; it emits its own events.

    Attributes:
        to_agent: Name of the other agent.
        child_run_id: Id of the new run.
    """

    type: ClassVar[Literal["delegated"]] = "delegated"

    to_agent: str
    child_run_id: str


@attrs.frozen(kw_only=True)
class MCPServerOmitted(EventBase):
    """An MCP server cannot be used, and the run continues without its tools.

    Attributes:
        server: Name of the server.
        code: E-code of the error: E28.
        message: Text of the error.
    """

    type: ClassVar[Literal["mcp_server_omitted"]] = "mcp_server_omitted"

    server: str
    code: str
    message: str


@attrs.frozen(kw_only=True)
class OutputStored(EventBase):
    """A structured output has been stored in the context.

    Attributes:
        key: The context key, ``output_dest``.
    """

    type: ClassVar[Literal["output_stored"]] = "output_stored"

    key: str


@attrs.frozen(kw_only=True)
class RolloutChanged(EventBase):
    """A rollout got another share, or was promoted or stopped, in this process or in another one.

    It belongs to no run: ``run_id`` is empty and ``sequence`` is 0. Streams do not have it.

    Attributes:
        rollout: Name of the rollout; ``agent`` is the agent that has it.
        action: ``"promote"``, ``"stop"``, or ``"return"`` if a guard has given all runs the control.
        share: The share of all new arms together from now on, 0 to 1.
        arm: The arm that all runs get from now on; None while arms are assigned at random, or after a stop.
        author: Who changed it.
        reason: Why.
    """

    type: ClassVar[Literal["rollout_changed"]] = "rollout_changed"

    rollout: str
    action: str
    share: float
    arm: str | None
    author: str
    reason: str
