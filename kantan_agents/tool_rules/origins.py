"""``Origin``: which entries of ``allow`` may cover a tool whose server has chosen its name.

For ``deny`` and ``params``, all names count. For ``allow``, a name counts only if it cannot impersonate
another server's or a local tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import attrs

from kantan_agents.tool_rules.globs import is_glob, literal_beginning

SERVER_PREFIX = "mcp__"
"""The server's name and ``__`` follow."""

SHOWN_PREFIX = "mcp_"
"""From the SDK's ``include_server_in_tool_names``."""


@attrs.frozen
class Origin:
    """The names by which ``allow`` may cover a server's tool.

    Attributes:
        own: The server's name for it, if it counts. Only an exact entry covers it: patterns were written
            without knowledge of this server.
        prefixed: Names with a prefix from the operator's name for the server, each with this prefix. No
            pattern covers a name with an empty prefix.
        chosen: The server's name for it, even if it does not count; None for a whole server.
    """

    own: str | None = None
    prefixed: Mapping[str, str] = attrs.field(factory=dict, eq=dict, hash=False)
    chosen: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tool, without its whole server's."""
        of_tool = (name for name, prefix in self.prefixed.items() if name not in (prefix[:-2], f"{prefix}*"))
        return (*(() if self.own is None else (self.own,)), *of_tool)

    def lets(self, entry: str, name: str) -> bool:
        """Return whether an entry of ``allow`` that matches ``name`` may cover the tool."""
        if not is_glob(entry):
            return name in self.prefixed or name == self.own
        prefix = self.prefixed.get(name)
        if not prefix:
            return False
        start = SERVER_PREFIX if prefix.startswith(SERVER_PREFIX) else SHOWN_PREFIX
        literal = literal_beginning(entry)
        if not literal.startswith(start):
            return False
        if f"{name}__" == prefix and "__" in entry[len(start) :]:
            return False  # `mcp__*__read` names tools, so it covers no server `x__read`
        if name == entry:
            return True  # an exact name that contains `*` or `[`
        if "__" in literal[len(start) :]:
            # `mcp__github__*` names the server `github`, not a server `github__x`.
            return literal.startswith(prefix)
        server, separator, tool = entry[len(start) :].partition("__")
        named = prefix[len(start) : -2]
        # A wildcard ends at `__`: `mcp__git*hub__read` covers no tool `x_hub__read` of a server `gitlab`, and
        # `mcp__git*` no server `git__hub`.
        if "__" in named or not fnmatchcase(named, server):
            return False
        return not separator or fnmatchcase(name[len(prefix) :], tool)
