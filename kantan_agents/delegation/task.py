"""The ``Task`` tool: delegation to an agent that is kept as a file (spec subagents, delegation)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agents import FunctionTool

from kantan_agents.agent.from_definition import checked_models
from kantan_agents.definitions import AgentDefinition, AgentLoader, name_key
from kantan_agents.definitions.grants import TASK_NAMES
from kantan_agents.delegation.answers import answer_of, failure_of
from kantan_agents.delegation.ceiling import DelegationCeiling
from kantan_agents.delegation.chain import Delegation, link_of
from kantan_agents.delegation.child import Children, beginning, child_config, child_context
from kantan_agents.delegation.child_options import checked_child_options
from kantan_agents.delegation.overview import overview
from kantan_agents.delegation.parent import Parent, parent_of
from kantan_agents.delegation.request import PARAMETERS, SUBAGENT_TYPE, Request, read_request
from kantan_agents.delegation.roster import Roster
from kantan_agents.delegation.usage import UsageNote
from kantan_agents.errors import (
    AgentNotFoundError,
    DelegationCycleError,
    DelegationLimitError,
    InvalidOptionError,
    KantanAgentsError,
    ToolInputError,
)
from kantan_agents.interception import end_run_with
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import NO_RULES, RuleLayers, ToolFacts, ToolRules, ToolRulesMode, rules_of
from kantan_agents.tools import declare_names, facts_of, rule_parameter, show_each_turn

_log = get_logger("kantan_agents.delegation")

OnFailure = Literal["feedback", "raise"]

_DESCRIBED = "_kantan_described"

# What the model has asked for wrongly, and can correct.
_ANSWERED = (AgentNotFoundError, DelegationCycleError, DelegationLimitError, ToolInputError)


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
    """Make the tool by which an agent delegates a task to another one and gets its answer.

    Give it to an ``Agent`` as one of its ``tools``. The model calls it with ``description``, ``prompt`` and
    ``subagent_type``, the name of an agent. That agent runs through the same pipeline and middleware, in
    the same trace, with a context and a prompt of its own, and with the tools of the agent that delegates,
    as far as its file and all rules above allow: a delegation only narrows.

    Args:
        agents: Where the agents are: an ``AgentLoader``, definitions, or None for the usual directories.
        name: Name of the tool; in agent files it is called ``Task`` or ``Agent`` nevertheless.
        tool_rules: Rules that all who are delegated to obey besides.
        max_depth: How many agents may wait for one another: 1 lets nobody delegate further.
        max_delegations: How many delegations one outermost run may begin, those further down included.
        on_failure: What becomes of a failed child: ``"feedback"`` tells the model, ``"raise"`` ends the run.
        models: What short names of models in files stand for, as for ``Agent.from_definition``; None takes
            over those of the agent that delegates.
        **agent_options: Options for the agents that are delegated to (``model``, ``middleware``,
            ``metadata``, ...), instead of those of the agent that delegates.

    Raises:
        InvalidOptionError: E75, an option has a value it cannot have.
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
    task = _Task(
        roster=Roster(_loader(agents), SUBAGENT_TYPE),
        rules=NO_RULES if tool_rules is None else ToolRules.parse(rules_of(tool_rules)),
        max_depth=checked_int("max_depth", max_depth, 0),
        max_delegations=checked_int("max_delegations", max_delegations, 0),
        raises=on_failure == "raise",
        children=Children(checked_models(models), checked_child_options(agent_options)),
    )
    tool = FunctionTool(
        name=name,
        description=overview(()),
        params_json_schema=PARAMETERS,
        on_invoke_tool=task.run,
    )
    rule_parameter(SUBAGENT_TYPE)(tool)
    declare_names(tool, TASK_NAMES, name_key)
    show_each_turn(tool, task.shown)
    task.facts = facts_of(tool)
    return tool


def _loader(agents: Any) -> AgentLoader:
    if agents is None or isinstance(agents, AgentLoader):
        return agents or AgentLoader()
    if isinstance(agents, Iterable) and not isinstance(agents, (str, bytes, Mapping)):
        return AgentLoader(directories=(), builtin=agents)
    reason = f"must be an AgentLoader or AgentDefinitions, not {type(agents).__name__}"
    raise InvalidOptionError(option="agents", reason=reason)


class _Task:
    """One such tool, used by any number of agents and runs at the same time."""

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
        """Delegate; what the SDK calls."""
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
        except _ANSWERED as error:
            return _told(error)
        is_streamed = parent.run is not None and parent.run.is_streamed
        delegation = Delegation(link, DelegationCeiling(parent, self._rules), is_streamed)
        try:
            return await self._delegated(definition, parent, request.prompt, wrapper, delegation)
        except Exception as error:  # noqa: BLE001 - whatever it was, the agent above goes on without it
            return self._failed(parent, definition.name, error)

    async def _delegated(
        self, definition: AgentDefinition, parent: Parent, prompt: str, wrapper: Any, delegation: Delegation
    ) -> str:
        child = self._children.child(definition, parent)
        usage = UsageNote()
        token = beginning.set(delegation)
        try:
            context = await child.run_async(
                prompt, child_context(parent), run_config=child_config(parent, wrapper), hooks=usage
            )
        finally:
            beginning.reset(token)
            usage.add_to(wrapper)
        return answer_of(child, context["result"])

    def _failed(self, parent: Parent, agent: str, error: Exception) -> str:
        failure = failure_of(agent, error)
        _log.warning("delegated agent failed", agent=agent, by=parent.name, error=failure.reason)
        if not self._raises:
            return str(failure)
        if parent.run is not None:
            end_run_with(parent.run, failure)  # the SDK would make a text of it
        raise failure from failure.__cause__

    async def _definition(self, request: Request, parent: Parent) -> AgentDefinition:
        """Return the definition that is asked for, if this agent may delegate to it.

        Raises:
            AgentNotFoundError: E32, there is none, or none that it may have.
        """
        layers = parent.rules()
        try:
            definition = await self._roster.loader.get_agent(request.agent)
        except AgentNotFoundError as error:
            raise await self._unknown(request.agent, parent, layers) from error
        # The guard has asked about the name as the model wrote it; here it is the file's own.
        if not await self._roster.is_permitted(definition, self.facts, layers):
            raise await self._unknown(request.agent, parent, layers)
        return definition

    async def _unknown(self, name: str, parent: Parent, layers: RuleLayers) -> AgentNotFoundError:
        available = await self._roster.available(parent, self.facts, layers)
        return AgentNotFoundError(name=name, available=[definition.name for definition in available])

    async def shown(
        self, tool: FunctionTool, agent: Any, wrapper: Any, layers: RuleLayers
    ) -> FunctionTool | None:
        """Return the tool with the agents there are in its description; None if it cannot be used."""
        parent = parent_of(wrapper, agent)
        if not layers.decide_tool(self.facts).allowed:
            return tool  # hidden by the rules, which say so if it is called
        if link_of(parent.run, parent.name).depth >= self._max_depth:
            return None
        available = await self._roster.available(parent, self.facts, layers)
        return described(tool, overview(available)) if available else None


def described(tool: FunctionTool, description: str) -> FunctionTool:
    """Return a copy of a tool with another description; the same one as long as that stays the same."""
    # Kept on the tool, which goes with its agent; the SDK compares tools by identity.
    known: FunctionTool | None = tool.__dict__.get(_DESCRIBED)
    if known is not None and known.description == description:
        return known
    copied = copy.copy(tool)
    copied.__dict__.pop(_DESCRIBED, None)
    copied.description = description
    tool.__dict__[_DESCRIBED] = copied
    return copied


def _told(error: KantanAgentsError) -> str:
    reason = f" The reason is: {error.reason}." if isinstance(error, ToolInputError) else ""
    return f"{error}{reason}"
