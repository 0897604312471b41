"""Executes a run from its stored form."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

from agents import RunConfig

from kantan_agents.agent.bridge import context_of
from kantan_agents.agent.running.identity import Identity, next_identity
from kantan_agents.durable.execution import Execution
from kantan_agents.durable.middleware import Durable, durable_of
from kantan_agents.durable.session import check_session
from kantan_agents.durable.storage.approvals import ApprovalStore
from kantan_agents.durable.storage.names import stored_name
from kantan_agents.durable.stored_run import StoredRun, loaded_context
from kantan_agents.errors import (
    ApprovalStateError,
    KantanAgentsError,
    StoredStepError,
    UnknownDurableAgentError,
)
from kantan_agents.middleware.approve.calls import Edit
from kantan_agents.middleware.approve.stored_runs import state_from, state_of
from kantan_agents.middleware.approve.waiting_runs import decided


class Restart:
    """Executes stored runs; ``approvals`` has those that have waited."""

    def __init__(self, agents: Mapping[str, Any], approvals: ApprovalStore) -> None:
        self._agents = agents
        self._approvals = approvals

    async def run(self, execution: Execution, text: str) -> None:
        """Execute a run; E152 without its agent, E155 if it is unreadable."""
        stored = StoredRun.of_json(execution.root_id, text)
        agent = self._agents.get(stored.agent)
        if agent is None:
            known = ", ".join(sorted(self._agents)) or "no agents"
            raise UnknownDurableAgentError(run_id=execution.root_id, agent=stored.agent, known=known)
        execution.begun, execution.queue, execution.tenant = stored, stored.queue, stored.tenant
        durable = durable_of(agent) or Durable()
        options = {**stored.options, "run_config": RunConfig(**stored.config)}
        try:
            if stored.session is not None:
                opens = check_session(stored.agent, stored.session, durable.session)
                options["session"] = opens(stored.session)
            given, context = await self._input(execution, agent, stored)
            if stored.left_out and durable.reload is not None:
                made = durable.reload(context_of(given) if context is None else context)
                if inspect.isawaitable(made):
                    await made
        except Exception as error:
            if isinstance(error, KantanAgentsError) and not isinstance(error, ApprovalStateError):
                raise
            reason = f"it cannot be begun again: {type(error).__name__}: {error}"
            raise StoredStepError(run_id=execution.root_id, step="begin", reason=reason) from error
        token = next_identity.set(Identity(execution.root_id, execution.elapsed, stored.is_nested))
        try:
            if stored.streamed:
                async with agent.stream(given, context, **options) as streamed:
                    async for _ in streamed:
                        pass
            else:
                await agent.run_async(given, context, **options)
        finally:
            next_identity.reset(token)

    async def _input(self, execution: Execution, agent: Any, stored: StoredRun) -> tuple[Any, Any]:
        if stored.waited_for is not None:
            waited = await execution.call(partial(self._approvals.find, stored.waited_for))
            if waited is None:
                reason = f"the run {stored.waited_for} that it goes on with is not stored any more"
                raise StoredStepError(run_id=execution.root_id, step="begin", reason=reason)
            key = await execution.call(self._approvals.key)
            state = await state_of(agent, waited.state, (key,), trust_unsigned=False)
            ids = {stored_name(item.call_id or ""): item.call_id for item in state.get_interruptions()}
            answers = {ids.get(name) or name: answer for name, answer in waited.answers.items()}
            return decided(agent, state, answers), None
        if stored.state is None:
            return stored.input, loaded_context(stored)
        state = await state_from(agent, stored.state)
        edits = {call_id: Edit(**edit) for call_id, edit in stored.edits.items()}
        state._kantan_edits = edits  # type: ignore[attr-defined]  # as `decide` does
        return state, loaded_context(stored)
