"""Shows the events of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import monotonic
from typing import Final

import attrs
from rich.text import Text

from kantan_agents.cli.chat.activity import Activity
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.steps import StepLists
from kantan_agents.cli.terminal.console import ACCENT, BAD, LABEL, NOTICE, plain
from kantan_agents.cli.terminal.plain import one_line, shortened
from kantan_agents.cli.terminal.show_quantities import duration_text
from kantan_agents.core.events import Event, ToolCallDenied, ToolCallFinished

_MAX_NAME: Final = 40
_MAX_VALUE: Final = 60
_MAX_ARGUMENTS: Final = 2000

Refusing = Callable[[str, str], str | None]
"""Returns the rule that denies such a call, if known."""


@attrs.frozen
class _Call:
    tool: str
    arguments: str
    since: float = attrs.field(factory=monotonic)


class AnswerView:
    """Shows an answer while it is written."""

    def __init__(self, screen: Screen, refusing: Refusing, steps: StepLists) -> None:
        self._screen = screen
        self._refusing = refusing
        self._steps = steps
        self._calls: dict[tuple[str, str], _Call] = {}
        self._arguments: dict[tuple[str, str], str] = {}
        self._writing: str | None = None
        self._activity: Activity | None = None

    def show_status(self) -> None:
        """Show the current activity."""
        if self._activity is not None and (text := self._activity.text()):
            self._screen.status(text)

    def show(self, event: Event, run_id: str) -> None:
        """Show an event of the run or of a nested one."""
        is_own = event.run_id == run_id
        match event.type:
            case "model_call_started" | "retry_scheduled":
                self._show_activity(Activity.of(event))
            case "text_delta" if is_own:
                self._show_text(event.call_id, event.text)
                self._activity = Activity.writing(event.agent)
            case "tool_arguments_delta":
                key = (event.run_id, event.call_id)
                if len(written := self._arguments.get(key, "")) < _MAX_ARGUMENTS:
                    self._arguments[key] = written + event.arguments
            case "tool_call_started":
                key = (event.run_id, event.call_id)
                # The event of an immediately denied call has no arguments.
                arguments = event.arguments or self._arguments.get(key, "")
                self._calls[key] = _Call(event.tool, arguments)
                self._show_running()
            case "tool_call_finished":
                self._show_end(event)
            case "tool_call_denied":
                self._show_refusal(event, is_own=is_own)
            case _:
                self._show_note(event, is_own=is_own)

    def _show_note(self, event: Event, *, is_own: bool) -> None:
        match event.type:
            case "handed_off":
                self._screen.line(f"* {event.to_agent} goes on", LABEL)
            case "mcp_server_omitted":
                self._screen.line(f"! without the server {event.server}: {event.message}", NOTICE)
            case "model_call_finished" if is_own and event.answer_cut_off:
                why = "has reached the limit of its tokens"
                if event.finish_reason == "content_filter":
                    why = "was ended by the content filter of the provider"
                self._screen.line(f"! cut off: the answer {why}", NOTICE)

    def _show_text(self, call_id: str, text: str) -> None:
        if self._writing not in (None, call_id):
            self._screen.end_answer()
        self._writing = call_id
        self._screen.stream(text)

    def _show_end(self, event: ToolCallFinished) -> None:
        state = duration_text(event.seconds)
        if event.outcome == "finished":
            self._end(event, state, LABEL)
        else:
            reason = "" if event.message is None else f": {event.message}"
            self._end(event, f"{event.outcome} after {state}{reason}", BAD)

    def _show_refusal(self, event: ToolCallDenied, *, is_own: bool) -> None:
        call = self._calls.get((event.run_id, event.call_id))
        rule = self._refusing(call.tool, call.arguments) if is_own and call is not None else None
        self._end(event, f"denied: {event.message}" if rule is None else f"denied by {rule}", BAD)

    def _end(self, event: ToolCallFinished | ToolCallDenied, state: str, style: str) -> None:
        call = self._calls.pop((event.run_id, event.call_id), _Call(event.tool, ""))
        inside = event.agent if event.parent_run_id is not None else None
        summary, steps = self._steps.see(event, call.arguments) or (call.arguments, [])
        self._screen.line(call_line(event.tool, state, summary, style, inside))
        for line in steps:
            self._screen.line(line)
        self._show_running()

    def _show_running(self) -> None:
        self._activity = None
        if self._calls:
            self._screen.end_answer()
            calls = self._calls.values()
            names = ", ".join(short_name(call.tool) for call in calls)
            if step := self._steps.active:
                names = f"{step}: {names}"
            self._show_activity(Activity(names, min(call.since for call in calls)))

    def _show_activity(self, activity: Activity) -> None:
        self._activity = activity
        self.show_status()


def call_line(tool: str, state: str, arguments: str, style: str, agent: str | None = None) -> Text:
    """Return a tool call as one line, the arguments last."""
    inside = "" if agent is None else f"{short_name(agent)}: "
    return Text.assemble(
        ("! " if style == BAD else "* ", style),
        plain(f"{inside}{short_name(tool)}", ACCENT),
        plain(f" {one_line(state)}", style),
        plain(f"  {short_arguments(arguments)}", LABEL),
    )


def short_name(name: str) -> str:
    """Return a name on one line, shortened."""
    return shortened(name, _MAX_NAME)


def short_arguments(arguments: str) -> str:
    """Return arguments as ``path=notes.txt limit=5``."""
    if len(arguments) > _MAX_ARGUMENTS:
        return one_line(arguments[:_MAX_ARGUMENTS])
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return one_line(arguments)
    return one_line(" ".join(f"{key}={_short(value)}" for key, value in values.items()))


def _short(value: object) -> str:
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _MAX_VALUE)
