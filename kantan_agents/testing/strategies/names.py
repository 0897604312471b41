"""Names of tools, given or made up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from kantan_agents.testing.strategies.json_values import WORDS
from kantan_agents.tool_rules.globs import is_glob

Names = st.SearchStrategy[str] | Sequence[str]
"""Tool names to draw from: a strategy or a sequence of names."""

_TOOLS = ("search", "read_file", "write_file", "Bash", "fs.read", "mcp__github__get_issue")


def names_strategy(names: Names | None) -> st.SearchStrategy[str]:
    """Return a strategy for the given names, or for made-up ones."""
    if names is None:
        return st.sampled_from(_TOOLS) | WORDS
    return names if isinstance(names, st.SearchStrategy) else st.sampled_from(list(names))


def covered_name(pattern: str) -> str:
    """Return a name that a glob pattern covers, or a plain name unchanged."""
    if not is_glob(pattern):
        return pattern
    return re.sub(r"\[(?!!)(.).*?\]", r"\1", pattern).replace("*", "x").replace("?", "x")
