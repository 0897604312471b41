"""The tool ``ExitPlanMode``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from agents import FunctionTool

from kantan_agents.cli.chat.plan_entries import PlanEntry
from kantan_agents.errors import PlanModeError
from kantan_agents.toolkit.checked_tool import Work, checked_tool

NAME: Final = "ExitPlanMode"
NO_PERSON: Final = "No one can agree to the plan here, so it is the answer."
ONE_PLAN: Final = "Another plan has been proposed. Propose one plan at a time."
AGREED_BEFORE: Final = "The user has already agreed to a plan. Carry out that one."
_DESCRIPTION: Final = (
    "Plan mode is on: you may only read until the user agrees to a plan, and other calls are refused. Read "
    "what you need to know, then call this, and nothing beside it. The user agrees, or says what to change."
)
_PROPERTIES: Final[dict[str, Any]] = {
    "plan": {
        "type": "string",
        "minLength": 1,
        "maxLength": 20_000,
        "description": "The plan, in Markdown: what you will change, step by step.",
    },
    "permissions": {
        "type": "array",
        "maxItems": 20,
        "items": {"type": "string", "minLength": 1, "maxLength": 300},
        "description": "What the plan needs and the user should not be asked about again, as few and as "
        "narrow as possible, paths relative to the folder: Write(src/**), Edit(docs/*.md), Bash(pytest:*).",
    },
}


def plan_tool(propose: Work) -> FunctionTool:
    """Return the tool; ``propose`` handles its calls."""
    return checked_tool(NAME, _DESCRIPTION, _PROPERTIES, ["plan"], propose)


def refusal(tool: str, *, of_subagent: bool) -> PlanModeError:
    """Return the error for a denied call; subagents have no plan."""
    what = "answer with what should be changed" if of_subagent else f"propose a plan with {NAME}"
    return PlanModeError(tool_name=tool, hint=f"Read what you need to know, then {what}.")


def not_shown(problems: Iterable[str]) -> str:
    """Return the result if permissions cannot be granted."""
    listed = "\n".join(f"- {one}" for one in problems)
    return (
        f"The user has not seen the plan, because these cannot be permitted:\n{listed}\n"
        "Correct or omit them: the user is asked about each call without a permission."
    )


def not_agreed(reason: str) -> str:
    """Return the result for a rejected plan."""
    because = f" The reason: {reason}" if reason else ""
    return f"The user has not agreed.{because}\nPlan mode goes on. Change the plan and propose it again."


def agreed(granted: Sequence[str]) -> str:
    """Return the result for an accepted plan."""
    permitted = f" Permitted without a question: {', '.join(granted)}." if granted else ""
    return (
        f"The user has agreed to the plan. Carry it out now.{permitted} The user is asked about any other "
        "call that needs an approval. Calls that you made beside this one were refused: repeat them."
    )


def as_answer(plan: str, entries: Iterable[PlanEntry]) -> str:
    """Return a plan as an answer, if no one can agree to it."""
    listed = "\n".join(f"- {entry.text}" for entry in entries)
    return f"{plan}\n\nThe plan asks for:\n{listed}" if listed else plan
