"""The ``Task`` tool (spec subagents, TaskTool)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from agents import FunctionTool

from kantan_agents.agent import Agent
from kantan_agents.agent.delegation.approvals import answer_approvals
from kantan_agents.agent.delegation.chain import Delegation, DelegationCeiling, link_of
from kantan_agents.agent.delegation.child import (
    Children,
    UsageCollector,
    checked_child_options,
    child_config,
    child_context,
    next_delegation,
)
from kantan_agents.agent.delegation.lost_tools import warn_of_lost_tools
from kantan_agents.agent.delegation.parent import Parent, parent_of
from kantan_agents.agent.delegation.roster import Roster
from kantan_agents.agent.delegation.tool_interface import (
    PARAMETERS,
    SUBAGENT_TYPE,
    DelegationRequest,
    answer_of,
    delegation_error,
    read_request,
    tool_description,
)
from kantan_agents.agent.from_definition import checked_models
from kantan_agents.core.interception import end_run_with
from kantan_agents.core.pipeline import loggable
from kantan_agents.errors import (
    AgentNotFoundError,
    DelegationCycleError,
    DelegationLimitError,
    InvalidOptionError,
    KantanAgentsError,
    ToolInputError,
)
from kantan_agents.subagent_files import AgentDefinition, AgentLoader, name_key
from kantan_agents.subagent_files.grants import TASK_NAMES
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import NO_RULES, RuleLayers, ToolFacts, ToolRules, ToolRulesMode, rules_of
from kantan_agents.tools.facts import declare_names, facts_of, rule_parameter
from kantan_agents.tools.listing import show_each_turn
from kantan_agents.tools.read_only import mark_read_only
from kantan_agents.traces.capture.playback import IS_OWN_TOOL

_log = get_logger("kantan_agents.delegation")

OnFailure = Literal["feedback", "raise"]

DESCRIBED = "_kantan_described"

# Mistakes in the call that the model can correct.
_RETURNED_TO_MODEL = (AgentNotFoundError, DelegationCycleError, DelegationLimitError, ToolInputError)


def task_tool(
    agents: AgentLoader | Iterable[AgentDefinition] | None = None,
    *,
    name: str = "Task",
    tool_rules: ToolRulesMode | Mapping[str, Any] | None = None,
    max_depth: int = 3,
    max_delegations: int = 50,
    on_failure: OnFailure = "feedback",
    models: Mapping[str, Any] | None = None,
    **agent_options: Any,
) -> FunctionTool:
    """Create a tool that delegates a task to another agent and returns its answer.

    Add it to the ``tools`` of an ``Agent``, the parent. The model calls it with ``description``, ``prompt``
    and ``subagent_type``, the name of an agent. That agent, the child, runs through the same pipeline and
    middleware and in the same trace, with its own context and prompt. It gets the parent's tools, as far as
    its file and all rules of the agents above it allow. A child never has more permissions than its parent.
    Its prompt never reads the environment, even if the parent's does. Its tokens count toward the
    outermost run.

    Args:
        agents: The available agents: an ``AgentLoader``, definitions, or None for the default directories.
        name: Name of the tool. In subagent files it is always called ``Task`` or ``Agent``.
        tool_rules: Additional rules for all children.
        max_depth: Maximum number of delegations above a run; with 1, children cannot delegate further.
        max_delegations: Maximum number of delegations in one outermost run, nested ones included.
        on_failure: What happens if a child fails: ``"feedback"`` returns the error to the model, ``"raise"``
            aborts the run.
        models: Models for the short names in files, as in ``Agent.from_definition``; None uses the parent's.
        **agent_options: Options for the children (``model``, ``middleware``, ``metadata``, ...), instead of
            the parent's.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
        UnknownToolRulesModeError, ToolRulesTypeError, InvalidToolRulesError: E9, E18, E20, ``tool_rules``
            cannot be read.

    Returns:
        A function tool of the SDK.
    """
    if not isinstance(name, str) or not name:
        raise InvalidOptionError(option="name", reason=f"must be a str that is not empty, not {name!r}")
    if on_failure not in ("feedback", "raise"):
        raise InvalidOptionError(
            option="on_failure", reason=f'must be "feedback" or "raise", not {on_failure!r}'
        )
    task = DelegationTask(
        roster=Roster(_loader(agents)),
        rules=NO_RULES if tool_rules is None else ToolRules.parse(rules_of(tool_rules)),
        max_depth=checked_int("max_depth", max_depth, 0),
        max_delegations=checked_int("max_delegations", max_delegations, 0),
        raises=on_failure == "raise",
        children=Children(checked_models(models), checked_child_options(agent_options)),
    )
    tool = FunctionTool(
        name=name,
        description=tool_description(()),
        params_json_schema=PARAMETERS,
        on_invoke_tool=task.run,
    )
    rule_parameter(SUBAGENT_TYPE)(tool)
    declare_names(tool, TASK_NAMES, name_key)
    show_each_turn(tool, task.current_tool)
    setattr(tool, IS_OWN_TOOL, True)
    task.facts = facts_of(tool)
    return mark_read_only(tool)  # the agent's own calls are checked one by one


def _loader(agents: Any) -> AgentLoader:
    if agents is None or isinstance(agents, AgentLoader):
        return agents or AgentLoader()
    if isinstance(agents, Iterable) and not isinstance(agents, (str, bytes, Mapping)):
        return AgentLoader(directories=(), builtin=agents)
    reason = f"must be an AgentLoader or AgentDefinitions, not {type(agents).__name__}"
    raise InvalidOptionError(option="agents", reason=reason)


class DelegationTask:
    """One delegation tool, for any number of concurrent runs."""

    facts: ToolFacts

    def __init__(
        self,
        *,
        roster: Roster,
        rules: ToolRules,
        max_depth: int,
        max_delegations: int,
        raises: bool,
        children: Children,
    ) -> None:
        self._roster = roster
        self._rules = rules
        self._max_depth = max_depth
        self._max_delegations = max_delegations
        self._raises = raises
        self._children = children

    async def run(self, wrapper: Any, arguments: str) -> str:
        """Delegate one task; the SDK calls this."""
        parent = parent_of(wrapper)
        try:
            request = read_request(self.facts.name, arguments)
            definition = await self._definition(request, parent)
            link = link_of(parent.run, parent.name).next(
                definition.name,
                by=parent.name,
                max_depth=self._max_depth,
                max_delegations=self._max_delegations,
            )
        except _RETURNED_TO_MODEL as error:
            return _error_text(error)
        is_streamed = parent.run is not None and parent.run.is_streamed
        delegation = Delegation(link, DelegationCeiling(parent, self._rules), is_streamed)
        try:
            return await self._run_child(definition, parent, request.prompt, wrapper, delegation)
        except Exception as error:  # noqa: BLE001 - by default the parent run continues after any error
            return self._handle_failure(parent, definition.name, error)

    async def _run_child(
        self, definition: AgentDefinition, parent: Parent, prompt: str, wrapper: Any, delegation: Delegation
    ) -> str:
        child = self._children.child(definition, parent)
        warn_of_lost_tools(child, definition, delegation)
        usage = UsageCollector()
        token = next_delegation.set(delegation)
        try:
            config = child_config(parent, wrapper)
            context = await child.run_async(prompt, child_context(parent), run_config=config, hooks=usage)
            answer = answer_approvals.get()
            while answer is not None and (state := await answer(context["result"])) is not None:
                context = await child.run_async(state, run_config=config, hooks=usage)
        finally:
            next_delegation.reset(token)
            usage.add_to(wrapper)
        return answer_of(child, context["result"])

    def _handle_failure(self, parent: Parent, agent: str, error: Exception) -> str:
        failure = delegation_error(agent, error)
        reason = loggable(error, failure.reason)
        _log.warning("delegated agent failed", agent=agent, by=parent.name, error=reason)
        if not self._raises:
            return str(failure)
        if parent.run is not None:
            end_run_with(parent.run, failure)  # otherwise the SDK would return the error to the model
        raise failure from failure.__cause__

    async def _definition(self, request: DelegationRequest, parent: Parent) -> AgentDefinition:
        layers = parent.rules()
        try:
            definition = await self._roster.loader.get_agent(request.agent)
        except AgentNotFoundError as error:
            raise await self._not_found(request.agent, parent, layers) from error
        # The guard checked the model's name. This checks the file's.
        if not await self._roster.is_permitted(definition, self.facts, layers):
            raise await self._not_found(request.agent, parent, layers)
        return definition

    async def _not_found(self, name: str, parent: Parent, layers: RuleLayers) -> AgentNotFoundError:
        available = await self._roster.available(parent, self.facts, layers)
        return AgentNotFoundError(name=name, available=[definition.name for definition in available])

    @property
    def loader(self) -> AgentLoader:
        """The loader of its agents."""
        return self._roster.loader

    def child(self, definition: AgentDefinition, parent: Parent) -> Agent:
        """Return the agent that would work for ``parent``."""
        return self._children.child(definition, parent)

    def with_children(self, change: Callable[[Agent], Agent]) -> DelegationTask:
        """Return a copy whose children are changed."""
        copied = copy.copy(self)
        copied._children = self._children.changed_by(change)
        return copied

    async def current_tool(
        self, tool: FunctionTool, agent: Any, wrapper: Any, layers: RuleLayers
    ) -> FunctionTool | None:
        """Return the tool with the available agents; None if it cannot be used now."""
        parent = parent_of(wrapper, agent)
        if not layers.decide_tool(self.facts).allowed:
            return tool  # the rules hide it, and explain the denial if it is called
        if link_of(parent.run, parent.name).depth >= self._max_depth:
            return None
        available = await self._roster.available(parent, self.facts, layers)
        return with_description(tool, tool_description(available)) if available else None


def with_description(tool: FunctionTool, description: str) -> FunctionTool:
    """Return a copy with a description, the same while that is the same."""
    # The SDK compares tools by identity. Stored on the tool, the copy is freed with it.
    known: FunctionTool | None = tool.__dict__.get(DESCRIBED)
    if known is not None and known.description == description:
        return known
    copied = copy.copy(tool)
    copied.__dict__.pop(DESCRIBED, None)
    copied.description = description
    tool.__dict__[DESCRIBED] = copied
    return copied


def _error_text(error: KantanAgentsError) -> str:
    reason = f" The reason is: {error.reason}." if isinstance(error, ToolInputError) else ""
    return f"{error}{reason}"
