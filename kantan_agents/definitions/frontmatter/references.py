"""Anchors, aliases and merge keys: a repair reads field by field, so it cannot follow them."""

from __future__ import annotations

import re
from typing import Final

from kantan_agents.definitions.frontmatter.nodes import RefusedYamlError

_ANCHOR: Final = re.compile(r"(?<![^\s,\[{])&([^\s,\[\]{}]+)")
_ALIAS: Final = re.compile(r"(?<![^\s,\[{:])\*([^\s,\[\]{}]+)")
_MERGE: Final = re.compile(r"(?m)^[ \t]*(?:-[ \t]+)*[\"']?<<[\"']?[ \t]*:")

NOT_MERGED: Final = "the merge key '<<' is not followed in a file that is no valid YAML; write its keys out"


def anchors_in(front: str) -> frozenset[str]:
    """Return the names of the anchors in a frontmatter."""
    return frozenset(_ANCHOR.findall(front)) if "&" in front else frozenset()


def refuse_references(
    source: str, value: str, offset: int, anchors: frozenset[str], *, in_prose: bool
) -> None:
    """Refuse a field that is no YAML by itself and repeats something from elsewhere in the file.

    Args:
        source: The field.
        value: What stands after its colon.
        offset: Where the field begins in the frontmatter.
        anchors: What there is to be repeated.
        in_prose: Whether people write sentences in the field, in which a star is a star.

    Raises:
        RefusedYamlError: It does.
    """
    merge = _MERGE.search(source) if "<<" in source else None
    if merge:
        raise RefusedYamlError(offset + merge.start(), NOT_MERGED)
    if not anchors:
        return
    behind = offset + len(source) - len(value)
    for found in _ALIAS.finditer(value):
        if found[1] in anchors and not (in_prose and value[: found.start()].strip()):
            name = found[1][:60]
            words = f"the alias *{name} is not followed in a file that is no valid YAML; write it out"
            raise RefusedYamlError(behind + found.start(), words)
        if in_prose:
            return
