"""Why an MCP server cannot be used now."""

from __future__ import annotations

from kantan_agents.tools.guards.failures import UncertainCallError


class UnavailableError(Exception):
    """A server cannot be used now, for the reason in the message."""


class LostInCallError(UnavailableError, UncertainCallError):
    """The connection was lost during a call."""

    def __init__(self) -> None:
        super().__init__(
            "The connection to the server was lost during the call. The tool may have been executed or not: "
            "find out before you call it again."
        )
