"""E180 to E185: MCP servers from configuration files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kantan_agents.errors.root import KantanAgentsError


class MCPFileError(KantanAgentsError):
    """A configuration file of MCP servers is missing, larger than 1 MiB, or not UTF-8, JSON or TOML.

    Fix: Correct the part that ``reason`` names.

    Attributes:
        path: The file.
        reason: What is wrong.
    """

    code = "E180"
    is_bad_input = True
    template = "MCP configuration cannot be read: {path}: {reason}"
    path: str
    reason: str


class InvalidMCPConfigurationError(KantanAgentsError):
    """A configuration file, or ``mcpServers`` of a subagent file, has mistakes.

    A mistake in one server is an error only when this server is used.

    Fix: Correct each of ``error.problems``; each starts with its location.

    Attributes:
        path: The file.
        problems: Every mistake; each starts with its position in the file.
    """

    code = "E181"
    is_bad_input = True
    template = "MCP configuration is not valid: {path}: {listed}"
    path: str
    problems: Sequence[str]

    def __init__(self, *, path: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(path=path, problems=tuple(problems), listed=listed or "; ".join(problems))


class MCPVariablesError(KantanAgentsError):
    """A server's configuration needs environment variables that are not set, or that may not be read.

    The message never contains the value of a variable.

    Fix: Set the variable, and allow it.

    Attributes:
        server: Name of the server.
        path: The file that configures it.
        problems: Each variable that is missing, with its position in the file.
    """

    code = "E182"
    is_bad_input = True
    template = (
        "MCP server {server} of {path} needs environment variables: {listed}. Allow a variable with "
        "allow_env, or with [mcp] allow_env in your own kantan-agents.toml"
    )
    server: str
    path: str
    problems: Sequence[str]

    def __init__(self, *, server: str, path: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(
            server=server, path=path, problems=tuple(problems), listed=listed or "; ".join(problems)
        )


class MCPNotTrustedError(KantanAgentsError):
    """A server is configured by a file that the user has not trusted, or that has changed since.

    Fix: Run ``kantan-agents mcp trust FILE``. In code, pass ``trusted=True`` if the file is part of your
    program.

    Attributes:
        server: Name of the server.
        path: The file.
        reason: Why it is not trusted.
        hint: What to do.
    """

    code = "E183"
    is_bad_input = True
    template = "MCP server {server} is not started: {path} {reason}. {hint}"
    server: str
    path: str
    reason: str
    hint: str

    def __init__(self, *, server: str, path: str, reason: str, hint: str | None = None) -> None:
        hint = hint or f"Read the file, then run: kantan-agents mcp trust {shlex.quote(path)}"
        super().__init__(server=server, path=path, reason=reason, hint=hint)


class UnknownMCPServerError(KantanAgentsError):
    """No MCP server of this name is configured, or it is disabled.

    Fix: Correct the name, or configure the server.

    Attributes:
        server: The name.
        known: Names of the configured servers.
        hint: The nearest name, or what to do.
    """

    code = "E184"
    is_bad_input = True
    template = "No MCP server {server!r} is configured{hint} (configured: {listed})"
    server: str
    known: Sequence[str]
    hint: str

    def __init__(
        self, *, server: str, known: Sequence[str], hint: str = "", listed: str | None = None
    ) -> None:
        listed = listed or ", ".join(known) or "none"
        super().__init__(server=server, known=tuple(known), hint=hint, listed=listed)


class MCPTrustRecordError(KantanAgentsError):
    """Your configuration directory cannot be written, or other users may write to it.

    Fix: Correct the part that ``reason`` names, or set ``KANTAN_AGENTS_CONFIG_DIR`` to another directory.

    Attributes:
        path: The file or folder of the record.
        reason: What is wrong.
    """

    code = "E185"
    is_bad_input = True
    template = "The trust in an MCP configuration cannot be recorded: {path}: {reason}"
    path: str
    reason: str
