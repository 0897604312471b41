"""Creates an ``Agent`` from an ``AgentDefinition``."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kantan_agents.agent.agent_options import AgentOptions
from kantan_agents.agent.options import Renderer, checked_items, checked_renderer, standard_renderer
from kantan_agents.core.context import store
from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.core.prompt import Prompt, hash_text
from kantan_agents.errors import EmptyPromptTextError, InvalidOptionError, InvalidToolRulesError
from kantan_agents.subagent_files import AgentDefinition, grants_of, model_of
from kantan_agents.subagent_files.skill_tools import SKILL_TOOLS, is_of_file
from kantan_agents.subagent_files.unknown_tools import (
    UnknownTool,
    local_tools,
    names_no_tool,
    unknown_tools,
)
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import DEFINITION, ToolRules
from kantan_agents.tools.facts import facts_of_listed

_VERSION_DIGITS = 12
_FROM_FILE = object()
_log = get_logger("kantan_agents.definitions")


@attrs.frozen(eq=False)
class AgentFile:
    """The subagent file of an agent; ``stages`` are outside its middleware."""

    definition: AgentDefinition
    models: Mapping[str, Any] | None
    skills: Any
    stages: tuple[Any, ...] = ()

    def applied_to(self, given: AgentOptions) -> tuple[list[Any], list[Any], Any]:
        """Return the tools, middleware and renderer with the file's skills, turn limit and context."""
        # A parent passes on its tools, without the skill tools of its file.
        tools = [tool for tool in given.tools if not is_of_file(tool)]
        if self.skills is not None:
            tools += _skill_tools(self.definition, self.skills)
        middleware = [*self.stages, *given.middleware, (DEFINITION, _stage(self.definition))]
        values = _context_of(self.definition)
        if not values:
            return tools, middleware, given.renderer
        standard = standard_renderer(given.name, given.instructions, strict=given.strict)
        return tools, middleware, _WithContext(values, given.renderer, standard)

    def bind(self, agent: Any) -> None:
        """Limit an agent to the file's tools; E20 if a strict agent lacks some."""
        definition = self.definition
        rules = rules_of(definition)
        if self.skills is not None and isinstance(definition.tools, tuple):
            rules = rules.merge(ToolRules.parse({"allow": _allowed_skill_tools(definition)}))
        agent.standing_rules = agent.standing_rules.with_limits((DEFINITION, rules))
        finder = getattr(agent.sdk_agent.tool_index, "finder", None)
        existing = [*agent.unguarded_tools, *([] if finder is None else [finder])]
        check_tools(definition, existing, strict=agent.strict)
        agent.sdk_agent.turn_limit = definition.max_turns


def agent_from_file(
    kind: Any,
    file: AgentFile,
    *,
    model: Any,
    options: dict[str, Any],
    mcp_configuration: Any = None,
) -> Any:
    """Return an agent of class ``kind`` from a file; ``model`` applies if the file names none.

    Raises E2, E20 or E75; E181 to E184 for its servers.
    """
    definition = file.definition
    if not isinstance(definition, AgentDefinition):
        reason = f"must be an AgentDefinition, not {type(definition).__name__}"
        raise InvalidOptionError(option="definition", reason=reason)
    checked_models(file.models)
    for option in ("name", "instructions"):
        if option in options:
            raise InvalidOptionError(option=option, reason="is decided by the definition; leave it out")
    own_model = model_of(definition.model, file.models)
    options = {
        **options,
        "name": definition.name,
        "instructions": prompt_of(definition),
        "model": model if own_model is None else own_model,
    }
    if mcp_configuration is not None:
        servers = checked_items("mcp_servers", options.get("mcp_servers"))
        options["mcp_servers"] = [*servers, *_servers_of(definition, mcp_configuration, servers)]
    agent = kind.__new__(kind, **options)
    agent._file = file  # before `__init__`, which applies it
    agent.__init__(**options)
    file.bind(agent)
    return agent


def _servers_of(definition: AgentDefinition, configuration: Any, given: list[Any]) -> list[Any]:
    # Here, because most agents have no servers.
    from kantan_agents.tools.mcp import ConfiguredServers

    if not isinstance(configuration, ConfiguredServers):
        reason = f"must be what configured_servers returns, not {type(configuration).__name__}"
        raise InvalidOptionError(option="mcp_configuration", reason=reason)
    found = configuration.for_definition(definition)
    return [server for server in found if not any(server is one for one in given)]


def _skill_tools(definition: AgentDefinition, skills: Any) -> list[Any]:
    """Return the tools for the file's skills; all for the tool ``Skill``."""
    from kantan_agents.tools.skills.tools import tools_of_file  # not at the top: few agents have skills

    made = tools_of_file(skills, definition.skills or None)
    return made if definition.skills or SKILL_TOOLS[0] in local_tools(definition) else []


def _allowed_skill_tools(definition: AgentDefinition) -> list[str]:
    if definition.skills:
        return list(SKILL_TOOLS)
    # `Skill(refunds)` in the file's list permits only this skill's files.
    return list(SKILL_TOOLS[1:]) if SKILL_TOOLS[0] in local_tools(definition) else []


def checked_models(models: Any) -> Mapping[str, Any] | None:
    """Return ``models``; E75 unless it is a mapping or None."""
    if models is None or isinstance(models, Mapping):
        return models
    reason = f"must be a mapping of short names to models, not {type(models).__name__}"
    raise InvalidOptionError(option="models", reason=reason)


def prompt_of(definition: AgentDefinition) -> Prompt:
    """Return a definition's prompt; its version is the file's or a hash. E2 if empty."""
    text = definition.system_prompt
    try:
        return Prompt(definition.name, definition.version or hash_text(text)[:_VERSION_DIGITS], text)
    except EmptyPromptTextError as error:
        error.__notes__ = [f"The agent is {definition.name!r}, of {definition.path or 'no file'}."]
        raise


def rules_of(definition: AgentDefinition) -> ToolRules:
    """Return a definition's tool filter as rules; log remarks."""
    grants = grants_of(definition)
    for remark in grants.remarks:
        problem = f"agent {definition.name!r}: {remark}"
        _log.warning(problem, agent=definition.name, path=str(definition.path), remark=remark)
    return grants.rules


def missing_tools(definition: AgentDefinition, tools: Iterable[Any]) -> tuple[UnknownTool, ...]:
    """Return a definition's tools that are not among ``tools``."""
    given = list(tools)
    names = {tool.name for tool in given}
    if not unknown_tools(definition, names):  # the usual case
        return ()
    names.update(name for tool in given for name in facts_of_listed(tool).names)
    return unknown_tools(definition, names)


def check_tools(definition: AgentDefinition, tools: Iterable[Any], *, strict: bool) -> None:
    """Log a definition's missing tools; E20 if ``strict``."""
    unknown = missing_tools(definition, tools)
    if not unknown:
        return
    problem = names_no_tool(unknown, where=f"of agent {definition.name!r}")
    if strict:
        raise InvalidToolRulesError(problems=[problem])
    # In the message itself: a plain log shows no attributes.
    _log.warning(problem, agent=definition.name, path=str(definition.path))


def is_from_file(run: Run | None, key: str, value: Any) -> bool:
    """Return whether a context value came from the agent's file."""
    from_file: dict[str, Any] = run.state.get(_FROM_FILE, {}) if run is not None else {}
    return key in from_file and from_file[key] is value


def _context_of(definition: AgentDefinition) -> dict[str, Any]:
    context = definition.context
    if context is None:
        return {}
    return dict(context) if isinstance(context, Mapping) else {"context": context}


def _stage(definition: AgentDefinition) -> Any:
    """Return the stage for a file's context and turn limit; the caller's values win."""
    values, max_turns = _context_of(definition), definition.max_turns

    @calls_next_last
    async def apply_definition(run: Run, call_next: Next) -> None:
        if max_turns is not None:
            run.options.setdefault("max_turns", max_turns)
        if isinstance(run.context, dict):
            for key, value in values.items():
                if key not in run.context:
                    run.on_failure(store(run.context, key, copy.deepcopy(value)))
                    run.state.setdefault(_FROM_FILE, {})[key] = run.context[key]
        await call_next(run)

    return apply_definition


class _WithContext:
    """Appends a file's context to the instructions.

    Not as templates: the values may come from untrusted sources.
    """

    def __init__(self, values: Mapping[str, Any], renderer: Any, standard: Renderer) -> None:
        self._values = values
        self._render, self._arguments = checked_renderer(renderer, standard)

    async def __call__(self, text: str, context: dict[str, Any], allow_env: bool) -> Any:
        rendered = self._render(*(text, context, allow_env)[: self._arguments])
        rendered = await rendered if inspect.isawaitable(rendered) else rendered
        if not isinstance(rendered, str):
            return rendered  # `Agent.render` raises the error
        lines = _lines({key: context.get(key, value) for key, value in self._values.items()})
        return "\n".join([rendered.rstrip(), "", "# Context", "", *lines])


def _lines(values: Mapping[str, Any]) -> Iterable[str]:
    for key, value in values.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        yield shown if key == "context" and len(values) == 1 else f"{key}: {shown}"
