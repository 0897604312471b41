"""The calls that middleware may change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from kantan_agents.core.pipeline import Run

if TYPE_CHECKING:
    from agents import ModelResponse


class TextRewriter(Protocol):
    """Changes a streamed answer piece by piece."""

    def feed(self, piece: str) -> str:
        """Accept a piece and return the text to stream now, which may be empty."""
        ...

    def end(self) -> str:
        """Return the text that is still held back. No more pieces follow."""
        ...


@attrs.define(eq=False, repr=False)
class ModelCall:
    """One call of a model. A middleware may change it before ``call_next`` sends it to the model.

    Attributes:
        run: The run. Store per-run state in ``run.state``.
        agent: Name of the agent that makes the call.
        model: The SDK ``Model`` to call. Replace it with another one, a custom provider or a model name.
        instructions: The system prompt.
        input: The conversation so far: a str or a list of the SDK's input items.
        settings: The SDK's ``ModelSettings``. The agent owns them, so replace them, do not mutate them:
            ``call.settings = dataclasses.replace(call.settings, temperature=0)``.
        tools: The SDK's tools that the model may call. The list belongs to this call.
        options: The other arguments of the SDK's ``Model.get_response``: ``output_schema``, ``handoffs``,
            ``tracing``, ``previous_response_id``, ...
        is_streamed: Whether the run is streamed.
        has_begun: Whether the model has started to stream this answer, so that the provider charges for it.
        has_streamed: Whether part of this answer has been streamed. It cannot be taken back.
        broken_off: The provider's last response if the stream ended without an answer, for example at
            ``max_tokens``, and the provider reported its usage; else None.
        internal: Whether a middleware makes the call for its own purposes. Its answer is not streamed.
        rewriters: Functions that return a ``TextRewriter`` for each streamed answer, the outermost
            middleware's first: ``call.rewriters = (*call.rewriters, make)``. They change the stream, not the
            answer.
    """

    run: Run
    agent: str
    model: Any
    instructions: str | None
    input: Any
    settings: Any
    tools: list[Any]
    options: dict[str, Any] = attrs.field(factory=dict)
    is_streamed: bool = False
    has_begun: bool = False
    has_streamed: bool = False
    broken_off: Any = None
    internal: bool = False
    rewriters: tuple[Callable[[], TextRewriter], ...] = ()
    # For the library. The attempts for a structured output.
    _structured: Any = None
    # Makes the call past all middleware.
    _send: Any = None
    # Limits the answer of the library's own call, inside all middleware.
    _limit: Any = None
    # The answer to give without a request to the model.
    _stored: Any = None
    # Decides between two requests for this call.
    _race: Any = None
    # Whether a model got a request for it.
    _was_sent: bool = False
    # The usage of unused answers, each with whether it is complete.
    _other_usage: tuple[tuple[Any, bool], ...] = ()

    def internally(self, **changes: Any) -> ModelCall:
        """Return a copy for a call that the middleware makes for its own purposes.

        Pass it to ``call_next``. Its events are marked as internal. Its answer is not streamed, and is plain
        text even if the agent has an output type:

            summary = await call_next(call.internally(instructions="Summarize.", tools=[]))

        Args:
            **changes: Attributes to replace in the copy.
        """
        options = {**self.options, "output_schema": None}
        copied: dict[str, Any] = {
            "tools": list(self.tools),
            "options": options,
            "structured": None,
            **changes,
        }
        copied |= {"is_streamed": False, "has_begun": False, "has_streamed": False, "broken_off": None}
        copied |= {"stored": None, "race": None, "was_sent": False, "other_usage": ()}
        copied["internal"] = True
        return attrs.evolve(self, **copied)

    def __repr__(self) -> str:
        return f"<ModelCall of {self.agent!r} in run {self.run.id}>"


ModelNext: TypeAlias = Callable[[ModelCall], Awaitable["ModelResponse"]]
"""Type of the ``call_next`` of ``model_call``: calls the model and returns the SDK's ``ModelResponse``."""


@attrs.define(eq=False, repr=False)
class ToolCall:
    """One call of a tool. A middleware may change it before ``call_next`` runs the tool.

    The tool rules check ``arguments`` after the innermost middleware.

    Attributes:
        run: The run. Store per-run state in ``run.state``.
        agent: Name of the agent whose model called the tool.
        tool: The SDK's tool.
        name: Name of the tool.
        arguments: The arguments as the model wrote them: JSON text for a function tool. For other kinds of
            tools a description of the call, which cannot be replaced.
        call_id: The model's id for the call.
        tool_context: The SDK's context of the call.
        refusal: The error with which the rules denied the call, else None.
        error: The error that the tool raised in its last run, else None. ``call_next`` raises it unchanged.
        again: Number of earlier calls of the run with the same ``call_id``. Counted in durable runs.
        inside: If an SDK agent that serves as a tool makes the call: ids of the surrounding calls, each with
            a slash. Set in durable runs.
        tries: How often middleware has made the call, including this time. Counted in durable runs.
        by_user: Whether a user made it, with a slash command. No model can.
    """

    run: Run
    agent: str
    tool: Any
    name: str
    arguments: str
    call_id: str
    tool_context: Any
    refusal: Exception | None = None
    error: Exception | None = None
    # For the library: the capture of the call.
    _record: Any = None
    again: int = 0
    inside: str = ""
    tries: int = 1
    # For the library: decides after the rules. Returns the model's result and sets `refusal`, or returns
    # None.
    _gate: Callable[[ToolCall], Awaitable[str | None]] | None = None
    by_user: bool = False

    @property
    def idempotency_key(self) -> str:
        """A key that is the same if the call is repeated, and different for every other call.

        A process that resumes a durable run repeats unfinished calls. Pass this key to a service that acts
        once for each key.
        """
        return f"{self.run.id}-{self.path}"

    @property
    def path(self) -> str:
        """An identifier of the call that is unique in its run."""
        return f"{self.inside}{self.call_id}" + (f"-{self.again}" if self.again else "")

    def __repr__(self) -> str:
        return f"<ToolCall of {self.name!r} in run {self.run.id}>"


ToolNext: TypeAlias = Callable[[ToolCall], Awaitable[Any]]
"""Type of the ``call_next`` of ``tool_call``: runs the tool and returns its result, or raises its error.

The SDK handles an error that no middleware handles.
"""
