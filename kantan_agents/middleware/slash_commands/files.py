"""Commands from Markdown files, whose text becomes the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agents import RunConfig, RunState

from kantan_agents.agent.bridge import config_with_model
from kantan_agents.agent.bridge.paused_runs import chosen_in
from kantan_agents.core.interception import redacted_new_input
from kantan_agents.core.pipeline import Run
from kantan_agents.subagent_files import model_of
from kantan_agents.subagent_files.grants import grants_for
from kantan_agents.subagent_files.tool_lists import ALL
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tool_rules.decide import schema_of
from kantan_agents.tools.commands import Command
from kantan_agents.tools.skills import CommandFile
from kantan_agents.tools.skills.limits import Choice, choice_in, choice_of, head_line
from kantan_agents.traces.metadata import COMMAND_MODEL

COMMAND_LIMIT: Final = "command "
"""Prefix of the names of limits that commands set."""

ARGUMENTS: Final = "arguments"
_KEY: Final = "command"
_log = get_logger("kantan_agents.commands")


def command_of_file(file: CommandFile) -> Command:
    """A command with one string argument."""
    schema = {
        "type": "object",
        "properties": {ARGUMENTS: {"type": "string", "description": file.argument_hint or ""}},
    }
    return Command(file.name, file.summary, schema, file)


def facts_of_file(file: CommandFile) -> ToolFacts:
    """Return the facts for the user rules."""
    return ToolFacts((file.name,), ARGUMENTS, schema_of(ARGUMENTS))


def begin_with_file(run: Run, file: CommandFile, arguments: str, models: Mapping[str, Any]) -> None:
    """Make the text of a command the input of a run, under the command's limit and with its model.

    A model that is not in ``models`` has no effect: a file alone selects no provider.
    """
    model = _model_of(file, models)
    if model is not None:
        _use_model(run, model, models)
    text = file.expand(arguments)
    if file.limits_tools:
        choice = choice_of(file)
        _limit(run, choice)
        text = f"{head_line(choice, _KEY)}\n\n{text}"
    # Items and not a str, which could be parsed as a command again.
    items: list[Any] = [{"role": "user", "content": text}]
    run.input = redacted_new_input(run, items, f"the command {file.name}")
    _log.info("command sent", command=file.name, agent=run.agent.name)


def restore_command(run: Run, models: Mapping[str, Any]) -> None:
    """Restore the limit and the model of a command for a run that continues from its input.

    The first line of the latest input states the limit; a user who writes such a line only restricts the run.
    """
    model = chosen_in(run.input).get(COMMAND_MODEL) if isinstance(run.input, RunState) else None
    if isinstance(model, str) and model in models:
        _use_model(run, model, models)
    items = getattr(run.input, "_original_input", run.input)
    for item in reversed(items) if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("role") == "user":
            choice = choice_in(item.get("content"), _KEY)
            if choice is not None and choice.limits_tools:
                _limit(run, choice)
            return


def _use_model(run: Run, name: str, models: Mapping[str, Any]) -> None:
    config: RunConfig = run.run_config
    run.run_config = config_with_model(config, models[name])
    run.metadata = {**run.metadata, COMMAND_MODEL: name}


def _limit(run: Run, choice: Choice) -> None:
    rules = grants_for(ALL if choice.allowed is None else choice.allowed, choice.denied).rules
    limit = (f"{COMMAND_LIMIT}{choice.name}", rules)
    if limit not in run.limits:  # a middleware may repeat the run
        run.limits = (*run.limits, limit)


def _model_of(file: CommandFile, models: Mapping[str, Any]) -> str | None:
    if file.model is None:
        return None
    name = file.model.strip()
    if name in models:
        return name
    if model_of(name) is not None:
        _log.info("model of a command not used", command=file.name, model=name)
    return None
