"""``Origin``: which entries of ``allow`` may cover a tool whose server has chosen its name.

All names of a tool count for ``deny`` and ``params``: refusing more is safe. For ``allow``, a name counts
only if the server that offers the tool cannot claim by it to be another server or a local tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import attrs

from kantan_agents.tool_rules.globs import is_glob, literal_beginning

SERVER_PREFIX = "mcp__"
"""Names for rules begin with it, followed by the server's name and ``__``."""

SHOWN_PREFIX = "mcp_"
"""Names that the SDK creates with ``include_server_in_tool_names`` begin with it."""


@attrs.frozen
class Origin:
    """The names by which ``allow`` may cover a tool of a server.

    Attributes:
        own: The name that the server has chosen, None if it may not count. Only an entry that spells it out
            covers it: a pattern was written without knowing this server.
        prefixed: Names with the prefix that the operator's name for the server gives them, each with this
            prefix. No pattern covers a name with an empty prefix.
        chosen: The name that the server has chosen, whether or not it may count; None for a whole server.
    """

    own: str | None = None
    prefixed: Mapping[str, str] = attrs.field(factory=dict, eq=dict, hash=False)
    chosen: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the tool may be called by, without those of its whole server."""
        of_tool = (name for name, prefix in self.prefixed.items() if name not in (prefix[:-2], f"{prefix}*"))
        return (*(() if self.own is None else (self.own,)), *of_tool)

    def lets(self, entry: str, name: str) -> bool:
        """Return whether the entry of ``allow`` that matches ``name`` may cover the tool."""
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
            return False  # `mcp__*__read` names tools; a server `x__read` is not one
        if name == entry:
            return True  # a name with `*` or `[` in it, spelled out
        if "__" in literal[len(start) :]:
            # `mcp__github__*` names the server `github`, and not a server `github__x`.
            return literal.startswith(prefix)
        server, separator, tool = entry[len(start) :].partition("__")
        named = prefix[len(start) : -2]
        # A wildcard ends at `__`: `mcp__git*hub__read` lets no tool `x_hub__read` of a server `gitlab` in,
        # and `mcp__git*` no server `git__hub`.
        if "__" in named or not fnmatchcase(named, server):
            return False
        return not separator or fnmatchcase(name[len(prefix) :], tool)
