"""E30 to E39: agent definitions, and the delegation to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class AgentFileError(KantanAgentsError):
    """An agent file cannot be read at all.

    Attributes:
        path: The file; None for a text that comes from nowhere.
        line: The line it fails in, from 1 on.
        reason: What is wrong.
    """

    code = "E30"
    template = "Agent file cannot be read: {where}: {reason}"
    path: str | None
    line: int
    reason: str

    def __init__(self, *, path: Any = None, line: int = 1, reason: str, where: str | None = None) -> None:
        where = where or _where(path, line)
        super().__init__(path=None if path is None else str(path), line=line, reason=reason, where=where)


class InvalidDefinitionError(KantanAgentsError):
    """What an agent file says, or what an ``AgentDefinition`` is made of, is no definition.

    Attributes:
        path: The file; None where there is none.
        line: The line of the first mistake, from 1 on.
        problems: Every mistake; each begins with the field it is about.
    """

    code = "E31"
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
    """There is no agent of this name.

    Attributes:
        name: The name that was asked for.
        available: Names of the agents there are.
    """

    code = "E32"
    template = "Agent not found: {name} (there are: {listed})"
    name: str
    available: Sequence[str]

    def __init__(self, *, name: str, available: Sequence[str], listed: str | None = None) -> None:
        listed = listed or _shortened(available)
        super().__init__(name=name, available=tuple(available), listed=listed)


class DelegationLimitError(KantanAgentsError):
    """A delegation would go deeper, or be one more, than is allowed.

    Attributes:
        agent: The agent that was to be delegated to.
        limit: What is exhausted, with its number.
    """

    code = "E33"
    template = "Agent cannot be delegated to: {agent}: {limit}"
    agent: str
    limit: str


class DelegationCycleError(KantanAgentsError):
    """An agent would work for itself: it is one of those that wait for this delegation.

    Attributes:
        agent: The agent that was to be delegated to.
        chain: The agents that wait, the outermost first.
    """

    code = "E34"
    template = "Agent is at work already: {agent} (delegated by {listed})"
    agent: str
    chain: Sequence[str]

    def __init__(self, *, agent: str, chain: Sequence[str], listed: str | None = None) -> None:
        super().__init__(agent=agent, chain=tuple(chain), listed=listed or " -> ".join(chain))


class DelegatedAgentError(KantanAgentsError):
    """An agent that was delegated to has failed; its own error is the cause of this one.

    Attributes:
        agent: Name of the agent.
        reason: What its run ended with.
    """

    code = "E35"
    template = "Agent failed: {agent}: {reason}"
    agent: str
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
