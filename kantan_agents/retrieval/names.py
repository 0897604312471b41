"""Names of tools that users write, held against those there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from kantan_agents.errors import UnknownRetrievedToolError


def known_names(names: Iterable[str], tools: Sequence[str]) -> list[str]:
    """Return ``names``, all of which are among those of ``tools``.

    Raises:
        UnknownRetrievedToolError: E58, some are not; it lists the nearest.
    """
    names, known = list(names), frozenset(tools)
    problems = [_problem(name, tools) for name in names if name not in known]
    if problems:
        raise UnknownRetrievedToolError(problems=problems)
    return names


def _problem(name: str, tools: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, tools, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "it must be one of its plain function tools"
    return f"{name!r:.100} ({hint})"
