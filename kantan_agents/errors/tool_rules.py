"""E20 to E24, E27 to E29, E37: tool rules, tool providers and MCP servers of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class InvalidToolRulesError(KantanAgentsError):
    """A rule set has mistakes, or the file of a strict agent names tools that do not exist.

    Fix: Correct each of ``error.problems``. ``kantan-agents tools check FILE`` prints them, one a line.

    Attributes:
        problems: One sentence per mistake, each starting with its path.
    """

    code = "E20"
    is_bad_input = True
    template = "Invalid tool rules: {listed}"
    problems: tuple[str, ...]

    def __init__(self, *, problems: Sequence[str], **_listed: Any) -> None:
        super().__init__(problems=tuple(problems), listed="; ".join(problems))


class UnknownToolError(KantanAgentsError):
    """A model called a tool that its agent does not have.

    The model gets this message with the names of the tools it may use. The run fails after five turns in a
    row with nothing but such mistakes.

    Fix: Usually nothing. Check whether the instructions mention a tool with this name.

    Attributes:
        tool_name: The name in the call.
    """

    code = "E21"
    template = "There is no tool with this name: {tool_name}"
    tool_name: str


class ToolProviderFailedError(KantanAgentsError):
    """A tool provider cannot be imported, or its methods fail; its own error is the ``__cause__``.

    Fix: Correct or uninstall it, or select others with ``tool_providers=[...]``.

    Attributes:
        provider: Name of its entry point.
        distribution: Name of the distribution that declares it.
        reason: Type and message of its error.
    """

    code = "E22"
    is_bad_input = True
    template = "Tool provider {provider} of {distribution} failed: {reason}"
    provider: str
    distribution: str
    reason: str


class DuplicateToolError(KantanAgentsError):
    """Two tool providers have a tool with the same name.

    Fix: Select one of them, or pass your own tool with this name: it wins.

    Attributes:
        tool_name: The name.
        first: Entry point of the first provider.
        second: Entry point of the second provider.
    """

    code = "E23"
    is_bad_input = True
    template = (
        "Tool {tool_name} comes from two providers, {first} and {second}; choose with tool_providers=[...]"
    )
    tool_name: str
    first: str
    second: str


class UnknownToolProviderError(KantanAgentsError):
    """``tool_providers`` names a provider that is not installed.

    Fix: Install it, or correct the name. ``kantan-agents tools list`` shows the installed providers.

    Attributes:
        provider: The name.
        installed: Names of the installed providers.
    """

    code = "E24"
    is_bad_input = True
    template = "Unknown tool provider: {provider} (installed: {installed})"
    provider: str
    installed: str


class RepeatedFailureError(KantanAgentsError):
    """A model made the same call in five turns, and it failed in the same way each time.

    In between, neither this call nor a new one succeeded. The exception of the tool is the ``__cause__``.

    Fix: If the model should call the tool until something is ready, return a str instead of raising an
    exception.

    Attributes:
        tool_name: Name of the tool.
        arguments: The arguments of the call as JSON text; empty if they are unknown.
        reason: The latest error, shortened; if the tool has raised it, it is also the ``__cause__``.
        count: The number of failures in a row.
    """

    code = "E27"
    template = "Tool {tool_name} failed {count} times in a row in the same way: {reason}"
    tool_name: str
    arguments: str
    reason: str
    count: int


class ToolSchemaError(KantanAgentsError):
    """A function cannot become a tool: no JSON Schema can describe its parameters.

    The SDK's own error is the ``__cause__``.

    Fix: Give the parameter a precise type, such as a pydantic model instead of ``dict[str, Any]``, or create
    the tool with ``agents.function_tool(strict_mode=False)``.

    Attributes:
        tool_name: Name of the function.
        parameters: The parameters that cause it; empty if it is not a single one.
        reason: What is wrong, and what to do.
    """

    code = "E29"
    template = "Tool {tool_name} has no usable schema: {reason}"
    tool_name: str
    parameters: tuple[str, ...]
    reason: str


class MCPServerUnavailableError(KantanAgentsError):
    """An MCP server cannot be reached, or does not list its tools; the exception is the ``__cause__``.

    Attributes:
        server: Name of the server.
        agent: Name of the agent that needs its tools.
        reason: What happened, and whether another attempt was made.
    """

    code = "E28"
    template = (
        "MCP server {server} of agent {agent} cannot be used: {reason}; start or correct the server, "
        'or let runs continue without it with Agent(on_mcp_failure="continue")'
    )
    server: str
    agent: str
    reason: str


class MCPServerLoopError(KantanAgentsError):
    """An MCP server is connected on an event loop that makes no progress during this run.

    Attributes:
        server: Name of the server.
        agent: Name of the agent that needs it.
        reason: Why the event loop makes no progress.
    """

    code = "E37"
    template = (
        "MCP server {server} of agent {agent} is connected on an event loop that {reason}; "
        "call run_async in the event loop of the connection, "
        "or give agent.run a server that is not connected, which it connects itself"
    )
    server: str
    agent: str
    reason: str
