"""Converts YAML nodes to values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from kantan_agents.subagent_files.frontmatter.nodes import Fields, Items, Node, RefusedYamlError, Scalar

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


def is_null(node: Node) -> bool:
    """Return whether the node is null."""
    return isinstance(node, Scalar) and node.style is None and node.text in _NULLS


def to_data(node: Node) -> Any:
    """Return JSON-like data, with a str for each scalar on which YAML 1.1 and 1.2 disagree.

    So ``010`` (8 or 10), ``1_000``, ``yes`` and dates survive a round trip through any parser.
    """
    if isinstance(node, Scalar):
        return to_scalar(node)
    if isinstance(node, Items):
        return [to_data(item) for item in node.items]
    return {key.text: to_data(value) for key, value in merged_pairs(node)}


def to_scalar(node: Scalar) -> Any:
    """Return the number, boolean or None of a plain scalar, else a str."""
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


def merged_pairs(node: Fields) -> Iterator[tuple[Scalar, Node]]:
    """Yield the pairs of a mapping after the pairs of its merge keys (``<<: *base``), so that its own win."""
    own = []
    for key, value in node.pairs:
        if key.text != MERGE or key.style is not None:
            own.append((key, value))
            continue
        # The first of several bases wins, so it comes last.
        for base in reversed(value.items) if isinstance(value, Items) else [value]:
            if not isinstance(base, Fields):
                raise RefusedYamlError(key.index, "the merge key '<<' must refer to a mapping")
            yield from merged_pairs(base)
    yield from own
