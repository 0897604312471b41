"""What a middleware is given: one call of a model or of a tool, to be read and changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from kantan_agents.pipeline import Run

if TYPE_CHECKING:
    from agents import ModelResponse


class TextRewriter(Protocol):
    """Changes a text that comes in pieces."""

    def feed(self, piece: str) -> str:
        """Take a piece, and return what may be passed on by now: all, nothing, or part of what is kept."""
        ...

    def end(self) -> str:
        """Return the rest: there are no more pieces."""
        ...


@attrs.define(eq=False, repr=False)
class ModelCall:
    """One call of a model, as a middleware sees it; what it changes is what the model gets.

    Attributes:
        run: The run it belongs to; per-run state goes to ``run.state``.
        agent: Name of the agent that asks.
        model: The SDK ``Model`` that is asked; may be replaced, also by a name for kantan-llm.
        instructions: The system prompt.
        input: The conversation so far: a str or a list of the SDK's input items.
        settings: The SDK's ``ModelSettings``; replace them, they belong to the agent:
            ``call.settings = dataclasses.replace(call.settings, temperature=0)``.
        tools: The SDK's tools the model may call, a list of its own.
        options: The other arguments of the SDK's ``Model.get_response``: ``output_schema``, ``handoffs``,
            ``tracing``, ``previous_response_id``, ...
        is_streamed: Whether the run is streamed.
        has_streamed: Whether text of this answer has been passed on already; it cannot be taken back.
        internal: Whether a middleware asks on its own behalf: nothing of the answer is streamed.
        rewriters: What makes a ``TextRewriter`` for each text that is streamed, the outermost middleware's
            first: ``call.rewriters = (*call.rewriters, make)``. They change what is streamed, not the answer.
        structured: What was tried so far if this call is for a structured output, else None; for the library.
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
    has_streamed: bool = False
    internal: bool = False
    rewriters: tuple[Callable[[], TextRewriter], ...] = ()
    structured: Any = None

    def internally(self, **changes: Any) -> ModelCall:
        """Return a copy to be passed to ``call_next`` on the middleware's own behalf.

        Its events are marked, nothing of the answer reaches the user's stream, and it is a text, whatever the
        agent's output type:

            summary = await call_next(call.internally(instructions="Summarise.", tools=[]))

        Args:
            **changes: Attributes that are to differ.
        """
        options = {**self.options, "output_schema": None}
        copied = {"tools": list(self.tools), "options": options, "structured": None, **changes}
        return attrs.evolve(self, is_streamed=False, has_streamed=False, internal=True, **copied)

    def __repr__(self) -> str:
        return f"<ModelCall of {self.agent!r} in run {self.run.id}>"


ModelNext: TypeAlias = Callable[[ModelCall], Awaitable["ModelResponse"]]
"""Type of the ``call_next`` of ``model_call``: calls the model and returns the SDK's ``ModelResponse``."""


@attrs.define(eq=False, repr=False)
class ToolCall:
    """One call of a tool, as a middleware sees it.

    The tool rules are asked about ``arguments`` as they are when the last middleware has called on.

    Attributes:
        run: The run it belongs to; per-run state goes to ``run.state``.
        agent: Name of the agent whose model called the tool.
        tool: The SDK's tool.
        name: Name of the tool.
        arguments: What it is called with: JSON text for a function tool, as the model wrote it. For tools
            of other kinds a description of the call, which cannot be replaced.
        call_id: The model's id for the call.
        tool_context: The SDK's context of the call.
        refusal: The error the rules have refused it with, once they have.
        error: What the tool itself raised, when it was run last; ``call_next`` raises it as it is.
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

    def __repr__(self) -> str:
        return f"<ToolCall of {self.name!r} in run {self.run.id}>"


ToolNext: TypeAlias = Callable[[ToolCall], Awaitable[Any]]
"""Type of the ``call_next`` of ``tool_call``: runs the tool and returns the result for the model, or raises
the tool's error. The SDK handles an error that no middleware handles."""
