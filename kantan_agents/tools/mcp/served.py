"""Lists an agent's MCP servers in a turn; a failing server aborts the run or is omitted."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import anyio
import attrs
from agents import RunContextWrapper, SpanError
from agents.tracing import mcp_tools_span

from kantan_agents.core.events import MCPServerOmitted
from kantan_agents.core.interception import error_message
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import KantanAgentsError, MCPServerUnavailableError
from kantan_agents.support.log import get_logger
from kantan_agents.tools.mcp.failure_policy import MCPFailurePolicy, choice_for
from kantan_agents.tools.mcp.failures import text_of
from kantan_agents.tools.mcp.server_connections import Tended, is_of_sdk, tended_servers
from kantan_agents.tools.mcp.unavailable import UnavailableError

_LEFT_OUT = object()
_NOT_WAITED_FOR = "another server ended the run before it had listed its tools"
_log = get_logger("kantan_agents.mcp")

servers_away: ContextVar[frozenset[str]] = ContextVar("kantan_agents_servers_away", default=frozenset())
"""MCP servers omitted from this task's latest listing."""


@attrs.frozen(eq=False)
class Served:
    """A server's tools; while it is away, the latest."""

    server: Tended
    tools: Sequence[Any]
    is_away: bool = False

    @property
    def is_unknown(self) -> bool:
        """Away and never listed."""
        return self.is_away and self.server.last_tools is None


@attrs.frozen(eq=False)
class _Answer:
    """``failure``: unusable, ``error``: the run fails."""

    tools: Sequence[Any] = ()
    failure: MCPServerUnavailableError | None = None
    message: str = ""
    reason: str = ""
    error: KantanAgentsError | None = None

    def ends_run(self, tended: Tended, policy: MCPFailurePolicy) -> bool:
        """Return whether the run cannot continue without the server."""
        is_away = self.failure is not None
        return self.error is not None or (is_away and choice_for(policy, tended.server.name) == "raise")


async def list_servers(agent: Any, wrapper: RunContextWrapper[Any], policy: MCPFailurePolicy) -> list[Served]:
    """Return what the agent's MCP servers offer now; ``policy`` decides about failing ones.

    Raises:
        MCPServerUnavailableError: E28, a server cannot be used, and the policy is "raise".
        MCPServerLoopError: E37, its connection is on an event loop that cannot make progress.
    """
    tended = tended_servers(agent)
    # A slow server must not delay the others. A server of another class may connect itself, which must happen
    # in this task.
    together = [one for one in tended if is_of_sdk(one.server)]
    answers = await _ask_all(together, agent, wrapper, policy) if len(together) > 1 else {}
    served: list[Served] = []
    away: set[str] = set()
    for one in tended:
        answer = answers[one] if one in answers else await _ask(one, agent, wrapper)
        settled = await _settle(one, agent, policy, answer)
        if settled.is_away:
            away.add(one.server.name)
        served.append(settled)
    servers_away.set(frozenset(away))
    return served


async def _ask_all(
    servers: Sequence[Tended], agent: Any, wrapper: RunContextWrapper[Any], policy: MCPFailurePolicy
) -> dict[Tended, _Answer]:
    run = current_run.get()
    is_played = run is not None and run._tape is not None
    answers: dict[Tended, _Answer] = {}

    async def ask(one: Tended) -> None:
        answers[one] = await _ask(one, agent, wrapper)
        if answers[one].ends_run(one, policy) and not is_played:
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for one in servers:
            tasks.start_soon(ask, one)
    ending = [one for one, answer in answers.items() if answer.ends_run(one, policy)]
    if ending:
        # A replay needs an entry for each server.
        for one in servers:
            if one not in answers and run is not None and run._capture is not None:
                run._capture.listed(one.server.name, None, _NOT_WAITED_FOR)
        first = min(ending, key=lambda one: answers[one].reason == _NOT_WAITED_FOR)
        await _settle(first, agent, policy, answers[first])
    return answers


async def _ask(tended: Tended, agent: Any, wrapper: RunContextWrapper[Any]) -> _Answer:
    server, run = tended.server, current_run.get()
    with mcp_tools_span(server=shown_name(server)) as span:
        try:
            tools = await _listed(tended, agent, wrapper, run)
        except KantanAgentsError as error:
            return _Answer(error=error)
        except Exception as error:  # noqa: BLE001 - whatever a server raises, it has not listed its tools
            reason = str(error) if isinstance(error, UnavailableError) else text_of(error)
            failure = MCPServerUnavailableError(server=shown_name(server), agent=agent.name, reason=reason)
            failure.__cause__ = error.__cause__ or error
            message = str(failure) if run is None else error_message(run, failure)
            span.set_error(SpanError(message=message, data=None))
            return _Answer(failure=failure, message=message, reason=reason)
        span.span_data.result = [tool.name for tool in tools]
    return _Answer(tools)


async def _settle(tended: Tended, agent: Any, policy: MCPFailurePolicy, answer: _Answer) -> Served:
    server, run = tended.server, current_run.get()
    if answer.error is not None:
        raise answer.error
    failure = answer.failure
    if failure is not None:
        if run is not None and run._capture is not None:
            run._capture.listed(server.name, None, answer.reason)
        if answer.ends_run(tended, policy):
            raise failure
        await _note_left_out(run, agent, tended, failure, answer.message)
        return Served(tended, tended.last_tools or (), is_away=True)
    tools = answer.tools
    tended.remember(tools)
    if run is not None and run._capture is not None:
        run._capture.listed(server.name, tools)
    if run is not None and _LEFT_OUT in run.state:
        run.state[_LEFT_OUT].discard((agent.name, tended))
    return Served(tended, tools)


async def _listed(
    tended: Tended, agent: Any, wrapper: RunContextWrapper[Any], run: Run | None
) -> Sequence[Any]:
    if run is None or run._tape is None:
        tools: Sequence[Any] = await tended.connection.ask(
            lambda: tended.server.list_tools(wrapper, agent), agent.name
        )
        return tools
    played: Sequence[Any] | str = run._tape.listing(tended.server.name)
    if isinstance(played, str):
        raise UnavailableError(played)
    return played


async def _note_left_out(
    run: Run | None, agent: Any, tended: Tended, failure: MCPServerUnavailableError, message: str
) -> None:
    """Log and emit once for each time that it becomes unavailable."""
    if run is not None:
        noted: set[Any] = run.state.setdefault(_LEFT_OUT, set())
        if (agent.name, tended) in noted:
            return
        noted.add((agent.name, tended))
    _log.warning("mcp_server_omitted", server=failure.server, agent=agent.name, error=message)
    if run is not None and run.events is not None:
        await run.events.emit(
            MCPServerOmitted, agent=agent.name, server=failure.server, code=failure.code, message=message
        )


def shown_name(server: Any) -> str:
    """Return a server's name without a URL's password and query."""
    # The SDK's private name for messages.
    return str(getattr(server, "_error_name", server.name))
