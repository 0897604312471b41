"""E30 to E35, E38 and E39: agent definitions and delegation, resources and prompts of MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class AgentFileError(KantanAgentsError):
    """A subagent file has no frontmatter, is not UTF-8, is too large, or cannot be opened.

    Fix: Add a frontmatter between two lines of ``---``. In a directory, a Markdown file without one is only a
    warning.

    Attributes:
        path: The file; None for a string.
        line: The line of the error, from 1 on.
        reason: What is wrong.
    """

    code = "E30"
    is_bad_input = True
    template = "Agent file cannot be read: {where}: {reason}"
    path: str | None
    line: int
    reason: str

    def __init__(self, *, path: Any = None, line: int = 1, reason: str, where: str | None = None) -> None:
        where = where or _where(path, line)
        super().__init__(path=None if path is None else str(path), line=line, reason=reason, where=where)


class InvalidDefinitionError(KantanAgentsError):
    """A subagent file or the arguments of ``AgentDefinition`` are not a valid definition.

    Fix: Correct each of ``error.problems``. ``kantan-agents agents validate`` lists the mistakes of all
    files.

    Attributes:
        path: The file; None for a definition without one.
        line: The line of the first mistake, from 1 on.
        problems: Every mistake; each starts with its field.
    """

    code = "E31"
    is_bad_input = True
    template = "Agent definition is not valid: {where}: {listed}"
    path: str | None
    line: int
    problems: Sequence[str]

    def __init__(
        self,
        *,
        problems: Sequence[str],
        path: Any = None,
        line: int = 1,
        where: str | None = None,
        listed: str | None = None,
    ) -> None:
        super().__init__(
            path=None if path is None else str(path),
            line=line,
            problems=tuple(problems),
            where=where or _where(path, line),
            listed=listed or "; ".join(problems),
        )


class AgentNotFoundError(KantanAgentsError):
    """No file and no built-in definition has this name.

    If a model used the name, it gets this message and can correct itself.

    Fix: Use one of ``error.available``.

    Attributes:
        name: The requested name.
        available: Names of the available agents.
    """

    code = "E32"
    is_bad_input = True
    template = "Agent not found: {name} (available: {listed})"
    name: str
    available: Sequence[str]

    def __init__(self, *, name: str, available: Sequence[str], listed: str | None = None) -> None:
        listed = listed or _shortened(available)
        super().__init__(name=name, available=tuple(available), listed=listed)


class DelegationLimitError(KantanAgentsError):
    """A delegation exceeds ``max_depth`` or ``max_delegations``. The model gets this message and continues.

    Fix: Raise the limit of ``task_tool``, or instruct the agents to delegate less.

    Attributes:
        agent: The agent to delegate to.
        limit: The exhausted limit, with its number.
    """

    code = "E33"
    template = "Cannot delegate to {agent}: {limit}"
    agent: str
    limit: str


class DelegationCycleError(KantanAgentsError):
    """An agent would delegate to itself, directly or through others. The model gets this message.

    Fix: Remove ``Task`` from the tools of one of the agents.

    Attributes:
        agent: The agent to delegate to.
        chain: The waiting agents, outermost first.
    """

    code = "E34"
    template = "Agent is already running: {agent} (delegated by {listed})"
    agent: str
    chain: Sequence[str]

    def __init__(self, *, agent: str, chain: Sequence[str], listed: str | None = None) -> None:
        super().__init__(agent=agent, chain=tuple(chain), listed=listed or " -> ".join(chain))


class DelegatedAgentError(KantanAgentsError):
    """A delegated agent failed; its own error is the ``__cause__``.

    The model gets this message. With ``on_failure="raise"``, the run fails.

    Attributes:
        agent: Name of the agent.
        reason: Type and message of its error.
    """

    code = "E35"
    template = "Agent failed: {agent}: {reason}"
    agent: str
    reason: str


class ResourceNotReadError(KantanAgentsError):
    """An MCP server does not know a resource, or it is not a string; its error is the ``__cause__``.

    Fix: Compare the URI with ``server.list_resources()``. For binary data, use ``server.read_resource``.

    Attributes:
        uri: URI of the resource.
        server: Name of the server.
        reason: What the server has answered, or why it is not a string.
    """

    code = "E38"
    template = "Cannot read resource {uri} of MCP server {server}: {reason}"
    uri: str
    server: str
    reason: str


class PromptNotFetchedError(KantanAgentsError):
    """An MCP server does not return a prompt; its error is the ``__cause__``.

    Fix: Compare the name and the arguments with ``server.list_prompts()``, or with ``/help``.

    Attributes:
        prompt: Name of the prompt.
        server: Name of the server.
        reason: What the server has answered, or which part of the prompt cannot be used.
    """

    code = "E39"
    template = "Cannot get prompt {prompt} of MCP server {server}: {reason}"
    prompt: str
    server: str
    reason: str


_SHOWN = 20
_LONGEST_NAME = 60


def _where(path: Any, line: int) -> str:
    return f"line {line}" if path is None else f"{path}:{line}"


def _shortened(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(_cut, names[:_SHOWN])) + more


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
