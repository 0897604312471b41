"""Strategies for JSON values."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


def json_values(*, max_leaves: int = 8, max_length: int = 12) -> st.SearchStrategy[Any]:
    """Generate JSON values: null, booleans, finite numbers, strings, arrays and objects.

    Each value survives ``json.loads(json.dumps(value))`` unchanged.

    Args:
        max_leaves: Approximate maximum number of scalars in a value.
        max_length: Maximum number of characters in a string or key, and of elements in an array or object.
    """
    texts = st.text(max_size=max_length)
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: (
            st.lists(inner, max_size=max_length) | st.dictionaries(texts, inner, max_size=max_length)
        ),
        max_leaves=max_leaves,
    )
