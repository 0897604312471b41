"""The todo list of ``TodoWrite`` in a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from kantan_agents.agent import Agent
from kantan_agents.cli.chat.kept_conversation import KeptConversation
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.console import LABEL, STRONG, plain
from kantan_agents.cli.terminal.plain import one_line, shortened
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.core.events import ToolCallDenied, ToolCallFinished
from kantan_agents.core.items import is_call, is_result
from kantan_agents.toolkit.todo_write import NAME, SIGNS, Todo, key_of, written_by

_MOST_CHANGES: Final = 10
_MAX_STEP: Final = 160
_MAX_STATUS: Final = 60
_STYLES: Final = {"completed": LABEL, "in_progress": STRONG, "pending": ""}


class StepLists:
    """Shows todo changes; each subagent has its own list."""

    def __init__(self, steps: Sequence[Todo] = ()) -> None:
        self._lists: dict[str | None, Sequence[Todo]] = {None: steps}

    @property
    def active(self) -> str:
        """The main agent's active step, or ""."""
        active = next((_words(one) for one in self._lists[None] if one["status"] == "in_progress"), "")
        return shortened(active, _MAX_STATUS)

    def see(self, event: ToolCallFinished | ToolCallDenied, arguments: str) -> tuple[str, list[Text]] | None:
        """Return a summary and lines; None if no list was written."""
        if event.tool != NAME or isinstance(event, ToolCallDenied):
            return None
        steps = written_by(arguments, event.output or "")
        if steps is None:
            return None
        owner = None if event.parent_run_id is None else event.run_id
        before, self._lists[owner] = self._lists.get(owner, ()), steps
        known, contents = set(map(_line, before)), {one["content"] for one in steps}
        changed = [one for one in steps if _line(one) not in known]
        removed = sum(one["content"] not in contents for one in before)
        indent = "  " if owner is None else "      "
        lines = [step_line(one, indent) for one in changed[:_MOST_CHANGES]]
        if len(changed) > _MOST_CHANGES:
            lines.append(plain(f"{indent}... and {len(changed) - _MOST_CHANGES} more", LABEL))
        return summary_of(steps) + (f", {removed} removed" if removed else ""), lines


def show_steps(steps: Sequence[Todo], screen: Screen) -> None:
    """Show a whole list, one step per line."""
    screen.line(summary_of(steps), LABEL)
    for one in steps:
        screen.line(step_line(one))


def summary_of(steps: Sequence[Todo]) -> str:
    """Return the progress, as ``1 of 3 steps completed``."""
    done = sum(one["status"] == "completed" for one in steps)
    return f"{done} of {counted(len(steps), 'step')} completed" if steps else "no steps"


def step_line(step: Todo, indent: str = "  ") -> Text:
    """Return a step as one line."""
    return plain(f"{indent}{_line(step)}", _STYLES[step["status"]])


def steps_of(kept: KeptConversation) -> list[Todo] | None:
    """Return the conversation's list, or None; even failed runs count, as the model knows of them."""
    for turn in reversed(kept.turns):
        results: dict[str, str] = {}
        for item in reversed(turn.items):
            call = str(item.get("call_id"))
            if is_result(item):
                results[call] = str(item.get("output"))
            elif is_call(item) and item.get("name") == NAME:
                steps = written_by(str(item.get("arguments")), results.get(call, ""))
                if steps is not None:
                    return steps
    return None


def give_steps(kept: KeptConversation, agent: Agent[Any], context: dict[str, Any]) -> None:
    """Set the context's list to the conversation's."""
    key = next(filter(None, map(key_of, agent.unguarded_tools)), None)
    steps = steps_of(kept)
    if key is not None and steps is not None:
        context[key] = steps


def _line(step: Todo) -> str:
    return f"{SIGNS[step['status']]} {shortened(_words(step), _MAX_STEP)}"


def _words(step: Todo) -> str:
    active = step.get("activeForm", "") if step["status"] == "in_progress" else ""
    return one_line(active) or one_line(step["content"])
