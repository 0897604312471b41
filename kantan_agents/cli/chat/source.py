"""Builds a chat's agent, again with another model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.agents.agent_to_run import AgentToRun, read_agent
from kantan_agents.cli.agents.instruction_files import InstructionFiles
from kantan_agents.cli.agents.pinned_files import PinnedFiles, pinned_loaders
from kantan_agents.cli.chat.questions import Questions
from kantan_agents.cli.run.agent_from_file import agent_from_file
from kantan_agents.cli.run.instruction_options import instruction_options
from kantan_agents.cli.run.run import AGENT_NAME, user_rules
from kantan_agents.cli.terminal.agent_options import AgentRunOptions
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.protect_used import protect_used
from kantan_agents.cli.terminal.replaced import scope_of
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware import Approve, SlashCommands
from kantan_agents.toolkit.ask_user_question import ask_user_question

_OPTION = "--agent"


@attrs.define(eq=False)
class AgentSource:
    """Builds an agent, also with another model or changed files."""

    _make: Callable[..., Agent[Any]]
    pinned: PinnedFiles | None
    _model: str | None = None
    _replaces: bool = attrs.field(default=False, init=False)

    def agent(self) -> Agent[Any]:
        """Return the agent with the last chosen model."""
        return self._make(self._model, replace=self._replaces)

    def agent_with(self, model: str) -> Agent[Any]:
        """Return the agent with another model, even if its file names one."""
        agent = self._make(model, replace=True)
        agent.check_model()
        self._model, self._replaces = model, True
        return agent


def agent_source(
    name: str | None,
    instructions: str,
    rules: Any,
    options: AgentRunOptions,
    tools: Sequence[Any] = (),
    questions: Questions | None = None,
    instruction_files: InstructionFiles | None = None,
) -> AgentSource:
    """Return the source of a chat's agent; one of a module has its own rules, tools and files.

    ``name`` is a name, a path that ends with ``.md``, ``MODULE:NAME`` of an ``Agent`` or of a function that
    returns one, or None for an assistant with ``instructions``.
    """
    asked, model = options.asked, options.model
    commands: list[Any] = [SlashCommands(user_rules(rules)), *([Approve(asked)] if asked else [])]
    asking = [] if questions is None else [ask_user_question(questions)]
    if name is None:
        given = [*tools, *asking] if tools else tools
        make = partial(_assistant, instructions, commands, given, instruction_files)
        files = None if instruction_files is None else PinnedFiles(instruction_files=instruction_files)
        return AgentSource(make, files, model)
    if ":" in name and not name.endswith(".md"):
        agreed = instruction_files is not None and instruction_files.is_agreed
        for option, is_given in (("--tools", tools), ("--ask", asked), ("--project-instructions", agreed)):
            if is_given:
                raise InvalidOptionError(option=option, reason="cannot be combined with an agent of a module")
        agent = _loaded(name)
        pinned = pinned_loaders(agent)
        module = sys.modules.get(name.partition(":")[0])
        protect_used([getattr(module, "__file__", None), *pinned.directories])
        return AgentSource(partial(_changed, agent), pinned, model)
    named = read_agent(name)
    named.pinned.instruction_files = instruction_files
    protect_used([named.definition.path])
    if questions is not None:
        scope = {"project": "of this project", "user": "yours"}.get(
            scope_of(named.definition.path, named.loader.directories) or "", "of the file that you named"
        )
        typer.echo(one_line(f"{named.definition.name} is {scope}: {named.definition.path}"), err=True)
    return AgentSource(partial(_of_file, named, commands, [*tools, *asking]), named.pinned, model)


def slash_commands_of(agent: Agent[Any]) -> SlashCommands | None:
    """Return middleware for slash commands, or None."""
    return next((one for one in agent.layers.middleware if isinstance(one, SlashCommands)), None)


def _assistant(
    instructions: str,
    middleware: Sequence[Any],
    tools: Sequence[Any],
    instruction_files: InstructionFiles | None,
    model: str | None,
    *,
    replace: bool = False,
) -> Agent[Any]:
    del replace
    options = instruction_options(instruction_files)
    return Agent(AGENT_NAME, instructions, model=model, middleware=middleware, tools=tools, **options)


def _of_file(
    named: AgentToRun,
    middleware: Sequence[Any],
    tools: Sequence[Any],
    model: str | None,
    *,
    replace: bool = False,
) -> Agent[Any]:
    if named.pinned.own is not None:  # from its file, or the version accepted since
        named = attrs.evolve(named, definition=named.pinned.own)
    if replace and model is not None:
        named = attrs.evolve(named, definition=attrs.evolve(named.definition, model=None))
    return agent_from_file(named, model, middleware, tools, asks=True)


def _changed(agent: Agent[Any], model: str | None, *, replace: bool = False) -> Agent[Any]:
    del replace
    return agent if model is None else agent.clone(model=model)


def _loaded(name: str) -> Agent[Any]:
    found = load_object(name, _OPTION, "app.agents:support")
    if callable(found) and not isinstance(found, Agent):
        try:
            found = found()
        except Exception as error:
            raise InvalidOptionError(option=_OPTION, reason=f"{name}: {describe(error)}") from error
    if not isinstance(found, Agent):
        reason = f"{name}: it must be an Agent, not {type(found).__name__}"
        raise InvalidOptionError(option=_OPTION, reason=reason)
    return found
