"""Access to retrieval's view."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from agents import FunctionTool


class RetrievalView(Protocol):
    """What the agent's model sees."""

    def record_call(self, name: str) -> None:
        """Record a call."""
        ...

    def unshown_tool(self, name: str) -> FunctionTool | None:
        """Return the guarded tool."""
        ...

    def show(self, name: str) -> bool:
        """Show a tool from the next turn on; return False if too many are added."""
        ...


in_view: ContextVar[RetrievalView | None] = ContextVar("kantan_agents_in_view", default=None)
"""Set each time the SDK gets an agent's tools; None if the agent shows all."""


def record_call(name: str) -> None:
    """Record a call in the current view."""
    view = in_view.get()
    if view is not None:
        view.record_call(name)


def unshown_tool(name: str) -> FunctionTool | None:
    """Return the guarded tool if the model was not shown it."""
    view = in_view.get()
    return view.unshown_tool(name) if view is not None else None


def show_and_explain(name: str) -> str:
    """Show it from the next turn on; return an answer."""
    view = in_view.get()
    is_coming = view is None or view.show(name)
    next_step = (
        "It is shown to you from now on: call it again if you need it."
        if is_coming
        else "Too many tools were asked for at once: call it again after your next step."
    )
    return f"The tool {name} exists, but its parameters were not shown to you, so it was not run. {next_step}"
