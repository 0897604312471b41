"""Strategies for contexts and prompts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kantan_agents.core.context import is_reserved
from kantan_agents.core.prompt import Prompt
from kantan_agents.testing.strategies.json_values import WORDS, json_values
from kantan_agents.testing.strategies.rules import Names, tool_rules


def contexts(names: Names | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Generate contexts that a run accepts.

    Args:
        names: Tool names for the rules in them, as for ``tool_rules``.

    Returns:
        A strategy for dicts with any of ``"tool_rules"`` (rules or None), ``"history"`` (a list of ``{"role":
        "user" | "assistant", "text": str}``) and ``"result"`` (any JSON value), and with custom keys that
        hold JSON values.
    """
    entry = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "text": st.text()})
    reserved = st.fixed_dictionaries(
        {},
        optional={
            "tool_rules": st.none() | tool_rules(names),
            "history": st.lists(entry, max_size=4),
            "result": json_values(),
        },
    )
    custom = st.dictionaries(WORDS.filter(lambda key: not is_reserved(key)), json_values(), max_size=4)
    return st.builds(lambda custom, reserved: {**custom, **reserved}, custom, reserved)


def prompts() -> st.SearchStrategy[Prompt]:
    """Generate valid prompts, with and without ``meta``, ``id`` and ``$ctx`` placeholders."""
    blank_free = st.text(min_size=1, max_size=20).filter(str.strip)
    marker = WORDS.map(lambda name: f"{{{{ $ctx.{name} }}}}")
    text = st.lists(blank_free | marker, min_size=1, max_size=4).map(" ".join)
    return st.builds(
        Prompt,
        name=blank_free,
        version=blank_free,
        text=text,
        meta=st.none() | st.dictionaries(WORDS, json_values(max_leaves=4), max_size=3),
        id=st.none() | blank_free,
    )
