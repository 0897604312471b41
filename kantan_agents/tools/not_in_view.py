"""Tools that exist and were not shown, because they did not seem to fit: whom to ask about them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from agents import FunctionTool


class InView(Protocol):
    """What the agent at work keeps of the tools that its model has in view."""

    def note_call(self, name: str) -> None:
        """Take note that a tool is called."""
        ...

    def kept_back(self, name: str) -> FunctionTool | None:
        """Return the guarded tool of this name if the model was not shown it."""
        ...

    def show(self, name: str) -> bool:
        """Bring a tool into view with the next turn; False if too many come already."""
        ...


in_view: ContextVar[InView | None] = ContextVar("kantan_agents_in_view", default=None)
"""Set whenever the SDK asks an agent for its tools; None for an agent that shows all it has."""


def note_call(name: str) -> None:
    """Take note that a tool is called."""
    view = in_view.get()
    if view is not None:
        view.note_call(name)


def kept_back(name: str) -> FunctionTool | None:
    """Return the guarded tool of this name if the model was not shown it; None if there is none."""
    view = in_view.get()
    return view.kept_back(name) if view is not None else None


def shown_from_now_on(name: str) -> str:
    """Bring a tool into view and return what the model is told that called it."""
    view = in_view.get()
    is_coming = view is None or view.show(name)
    next_step = (
        "It is shown to you from now on: call it again if you need it."
        if is_coming
        else "Too many tools were asked for at once: call it again after your next step."
    )
    return f"The tool {name} exists, but its parameters were not shown to you, so it was not run. {next_step}"
