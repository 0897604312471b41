"""Cases and finished cases for tests, and strategies that draw them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kantan_agents.lab import Case, FinishedCase, ToolUse
from kantan_agents.testing.strategies import json_values

_SHORT = st.text("abc", max_size=3)
TEXTS = st.text(max_size=12)
_VALUES = json_values(max_leaves=4, max_length=4)
_MAPPINGS = st.dictionaries(TEXTS, _VALUES, max_size=2)
_INPUTS = TEXTS | st.lists(_MAPPINGS, max_size=2)
_CONVERSATIONS = st.none() | st.sampled_from(["c1", "c2", "日本"])


def cases() -> st.SearchStrategy[Case]:
    """Draw cases with every kind of value."""
    return st.builds(
        Case,
        _INPUTS,
        id=TEXTS,
        context=_MAPPINGS,
        expected=_VALUES,
        metadata=_MAPPINGS,
        conversation=_CONVERSATIONS,
        earlier=st.lists(_MAPPINGS, max_size=1),
    )


def case_lists(
    drawn: st.SearchStrategy[Case] | None = None, max_size: int = 8
) -> st.SearchStrategy[list[Case]]:
    """Draw cases with different ids; by default, cases of a few short texts."""
    short = st.builds(Case, _SHORT, id=_SHORT, expected=st.none() | _SHORT, conversation=_CONVERSATIONS)
    return st.lists(short if drawn is None else drawn, max_size=max_size, unique_by=lambda case: case.id)


def finished(output: Any = "", *, case: Case | None = None, **values: Any) -> FinishedCase:
    """Return the run of a case; what is not given is empty."""
    given: dict[str, Any] = {
        "variant": "v1",
        "repeat": 0,
        "error": None,
        "tool_calls": (),
        "seconds": 0.5,
        "input_tokens": 10,
        "output_tokens": 5,
        "cost": None,
        "model_calls": 1,
        "trace_id": None,
    }
    return FinishedCase(case=case or Case("q"), output=output, **{**given, **values})


def expecting(expected: Any) -> Case:
    """Return a case with an expected output."""
    return Case("q", expected=expected)


def use(name: str, *, is_denied: bool = False, **arguments: Any) -> ToolUse:
    """Return a tool call."""
    return ToolUse(name, arguments, None if is_denied else "done", "a", is_denied)
