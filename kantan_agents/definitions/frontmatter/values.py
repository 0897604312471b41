"""What a YAML node means: plain scalars as YAML 1.2 reads them, where both versions of YAML agree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from kantan_agents.definitions.frontmatter.nodes import Fields, Items, Node, RefusedYamlError, Scalar

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_WORDS: Final = {
    **dict.fromkeys(_NULLS),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,299})\Z")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]{1,200}\Z")
_FLOAT: Final = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?\Z")
MERGE: Final = "<<"
"""The key under which YAML takes over what another mapping holds."""


def is_null(node: Node) -> bool:
    """Return whether the node says that there is nothing."""
    return isinstance(node, Scalar) and node.style is None and node.text in _NULLS


def data(node: Node) -> Any:
    """Return JSON-like data: numbers, truth values and null where YAML 1.1 and 1.2 see the same, else text.

    So ``010`` (8 or 10), ``1_000``, ``yes`` and dates are texts, and what is read here and written back
    is the same to other readers.

    Raises:
        RefusedYamlError: A merge key merges what is no mapping.
    """
    if isinstance(node, Scalar):
        return scalar(node)
    if isinstance(node, Items):
        return [data(item) for item in node.items]
    return {key.text: data(value) for key, value in unmerged(node)}


def scalar(node: Scalar) -> Any:
    """Return the value of a scalar: of a plain one maybe a number, a truth value or None, else its text."""
    text = node.text
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _HEX.match(text):
        return int(text, 16)
    if _FLOAT.match(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def unmerged(node: Fields) -> Iterator[tuple[Scalar, Node]]:
    """Yield the pairs of a mapping, those of its merge keys (``<<: *base``) first, so that its own win."""
    own = []
    for key, value in node.pairs:
        if key.text != MERGE or key.style is not None:
            own.append((key, value))
            continue
        # Of several bases the first one wins, so it comes last.
        for base in reversed(value.items) if isinstance(value, Items) else [value]:
            if not isinstance(base, Fields):
                raise RefusedYamlError(key.index, "the merge key '<<' merges what is no mapping")
            yield from unmerged(base)
    yield from own
