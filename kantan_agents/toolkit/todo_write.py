"""The tool ``TodoWrite``."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs
from agents import FunctionTool

from kantan_agents.core.context import is_reserved, store
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import InvalidOptionError, ToolInputError
from kantan_agents.toolkit.checked_tool import bad_input, checked_tool, read_arguments
from kantan_agents.tools.read_only import mark_read_only

__all__ = ["todo_write"]

Todo = dict[str, Any]
"""A step: ``content``, ``status`` and, if the model sets it, ``activeForm``."""

TODOS = "todos"
"""Default key of the list in the context."""

NAME = "TodoWrite"
_KEY = "__kantan_todos_key__"
_MOST = 100
_LONGEST = 1000
_IN_PROGRESS = "in_progress"
SIGNS = {"pending": "[ ]", _IN_PROGRESS: "[>]", "completed": "[x]"}
_DESCRIPTION = (
    "Write down the steps of a task with several of them, and keep the list up to date: the whole list in "
    "each call. Mark a step as in_progress before you begin it, and as completed as soon as it is done. At "
    "most one step is in progress."
)
_TEXT = {"type": "string", "minLength": 1, "maxLength": _LONGEST}
_PROPERTIES: dict[str, Any] = {
    "todos": {
        "type": "array",
        "maxItems": _MOST,
        "items": {
            "type": "object",
            "properties": {
                "content": {**_TEXT, "description": "The step, such as: Run the tests."},
                "status": {"enum": list(SIGNS)},
                "activeForm": {**_TEXT, "description": "The step while it is done: Running the tests."},
            },
            "required": ["content", "status"],
        },
    }
}


def todo_write(*, key: str = TODOS) -> FunctionTool:
    """Create the tool ``TodoWrite``, under the name that agent files use.

    The list is ``context["todos"]``, a list of dicts with ``content``, ``status`` (``"pending"``,
    ``"in_progress"`` or ``"completed"``) and, if the model sets it, ``activeForm``. It persists from turn to
    turn and from run to run. A failed run leaves the previous list.

    Args:
        key: Key of the list in the context.

    Raises:
        InvalidOptionError: E75: ``key`` is not a str, or is one of the library's own keys.
    """
    if not isinstance(key, str) or not key:
        raise InvalidOptionError(option="key", reason=f"must be a str that is not empty, not {key!r}")
    if is_reserved(key):
        raise InvalidOptionError(option="key", reason=f"{key!r} is a key of the library")

    async def work(wrapper: Any, given: dict[str, Any]) -> str:
        todos = _checked(given["todos"])
        context = getattr(wrapper, "context", None)
        if not isinstance(context, dict):
            return "The list cannot be kept: this run has no context."
        undo = store(context, key, todos)
        run = current_run.get()
        if run is not None:
            run.on_failure(undo)
        return _shown(todos)

    tool = mark_read_only(checked_tool(NAME, _DESCRIPTION, _PROPERTIES, ["todos"], work))
    setattr(tool, _KEY, key)
    return tool


def key_of(tool: object) -> str | None:
    """Return the context key of a ``TodoWrite`` tool, or None."""
    return getattr(tool, _KEY, None)


def written_by(arguments: str, result: str) -> list[Todo] | None:
    """Return the list that a call wrote; None after a denial or an error."""
    try:
        todos = _checked(read_arguments(NAME, _validator(), ["todos"], arguments)["todos"])
    except ToolInputError:
        return None
    # Only the first line: a middleware may have masked or shortened the rest.
    return todos if result.partition("\n")[0] == _shown(todos).partition("\n")[0] else None


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(todo_write().params_json_schema)


def _checked(todos: list[Todo]) -> list[Todo]:
    active = sum(todo["status"] == _IN_PROGRESS for todo in todos)
    if active > 1:
        raise bad_input(NAME, f"at most one step may be in_progress, and {active} are")
    for place, todo in enumerate(todos):
        if not todo["content"].strip():
            raise bad_input(NAME, f"todos.{place}.content is blank")
    known = ("content", "status", "activeForm")
    return [{name: todo[name] for name in known if name in todo} for todo in todos]


def _shown(todos: list[Todo]) -> str:
    if not todos:
        return "The list is empty."
    done = sum(todo["status"] == "completed" for todo in todos)
    lines = (f"{SIGNS[todo['status']]} {' '.join(todo['content'].split())}" for todo in todos)
    return "\n".join([f"{done} of {len(todos)} steps are completed:", *lines])
