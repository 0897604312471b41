"""The context of a run: one dict in, the same dict out (spec 2.5 to 2.7, 8, 10).

Each write returns its undo, for failed runs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Final

from kantan_agents.errors import ContextTypeError, HistoryTypeError, ToolRulesTypeError

Context = dict[str, Any]
Undo = Callable[[], None]

_ABSENT: Any = object()

PERMISSIONS: Final = ("tool_rules", "user_rules")
"""For models and for users."""

RESERVED_KEYS: Final = (*PERMISSIONS, "result", "history")
"""Keys that only the library and the caller's own code may write.

Code that writes foreign data (of a subagent file, a model, a middleware) checks ``is_reserved``.
"""


def is_reserved(key: object) -> bool:
    """Whether ``key`` is reserved, or resembles a permission key (``userRules``)."""
    return isinstance(key, str) and (key in RESERVED_KEYS or meant_permission(key) is not None)


def meant_permission(key: str) -> str | None:
    """Return the permission key that ``key`` resembles."""
    folded = _folded(key)
    return next((known for known in PERMISSIONS if _folded(known) == folded), None)


def reserved_in(keys: Iterable[object]) -> list[str]:
    """Return reserved keys, sorted."""
    return sorted(key for key in keys if isinstance(key, str) and is_reserved(key))


def _folded(key: str) -> str:
    text = unicodedata.normalize("NFKC", key).casefold()
    return "".join(filter(str.isalnum, text))


def check_context(context: object) -> Context:
    """E5 unless it is a dict."""
    if not isinstance(context, dict):
        raise ContextTypeError(got=type(context).__name__)
    return context


def check_history(history: object) -> list[Any]:
    """E6 unless it is a list."""
    if not isinstance(history, list):
        raise HistoryTypeError(got=type(history).__name__)
    return history


def empty_tool_rules() -> dict[str, Any]:
    """Return empty tool rules (spec 8.2)."""
    return {"allow": None, "deny": None, "params": {}}


def fill_defaults(context: Context, *, keep_history: bool) -> None:
    """Complete the reserved keys in place (spec 2.6), or raise E18 or E6 without a change."""
    rules = context.get("tool_rules")
    if rules is not None and not isinstance(rules, dict):
        raise ToolRulesTypeError(got=type(rules).__name__)
    if keep_history:
        check_history(context.get("history", []))
        context.setdefault("history", [])
    # The caller's None stays: it means no rules.
    if "tool_rules" not in context:
        context["tool_rules"] = empty_tool_rules()
    context.setdefault("result", None)


def store(context: Context, key: str, value: Any) -> Undo:
    """Set ``context[key]``; return an undo."""
    before = context.get(key, _ABSENT)
    context[key] = value

    def undo() -> None:
        if context.get(key, _ABSENT) is not value:
            return
        if before is _ABSENT:
            del context[key]
        else:
            context[key] = before

    return undo


def append_history(history: list[Any], entries: list[dict[str, str]], limit: int) -> Undo:
    """Append ``{"role", "text"}`` entries, retain ``limit``; return an undo (spec 10.2)."""
    history.extend(entries)
    dropped = history[: max(0, len(history) - limit)]
    del history[: len(dropped)]

    def undo() -> None:
        ours = {id(entry) for entry in entries}
        history[:] = [entry for entry in (*dropped, *history) if id(entry) not in ours]

    return undo
