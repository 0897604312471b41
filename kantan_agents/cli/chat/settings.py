"""The settings of a chat."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.agents.instruction_files import InstructionFiles
from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.folders import conversations_file, history_file
from kantan_agents.cli.chat.history_file import HistoryFile
from kantan_agents.cli.chat.plan_mode import PlanMode
from kantan_agents.cli.chat.questions import Questions
from kantan_agents.cli.chat.source import AgentSource, agent_source
from kantan_agents.cli.hooks.hooks import Hooks
from kantan_agents.cli.run.recording import RecordingTarget
from kantan_agents.cli.terminal.agent_options import INSTRUCTIONS, AgentRunOptions
from kantan_agents.cli.terminal.inputs import STDIN, read_context, read_instructions
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.protect_used import protect_database, protect_used
from kantan_agents.cli.tools.rules_file import CONTEXT_KEY, add_rules
from kantan_agents.errors import ConversationsFileError, InvalidOptionError
from kantan_agents.middleware import UserRules
from kantan_agents.middleware.slash_commands.user_rules import USER_RULES


@attrs.frozen(eq=False)
class Settings:
    """The settings of a chat; ``questions`` is None without a terminal."""

    agent: Agent[Any]
    source: AgentSource
    context: dict[str, Any]
    options: AgentRunOptions
    target: RecordingTarget | None
    store: Conversations | None
    resume: str | None
    prices: Mapping[str, tuple[float, float]]
    questions: Questions | None
    hooks: Hooks
    folder: Path = attrs.field(factory=lambda: Path(os.path.realpath(".")))
    place_of_commands: str = ""
    plan: PlanMode = attrs.field(factory=PlanMode)
    history: HistoryFile | None = None


def read_start(
    agent: str | None,
    rules: str | None,
    options: AgentRunOptions,
    tools: Sequence[Any],
    questions: Questions | None,
    instruction_files: InstructionFiles | None,
) -> tuple[AgentSource, dict[str, Any]]:
    """Return the agent's source, and the initial context."""
    context = read_context(options.context_file)
    stated = context.get(USER_RULES)
    if stated is not None:
        # The user at the terminal wrote or chose the file, so its rules count like rules in code.
        context[USER_RULES] = UserRules(stated)
    if rules == STDIN:
        raise InvalidOptionError(option="--rules", reason="standard input is already read for the questions")
    if rules is not None:
        add_rules(context, rules, "")
    protect_used([rules, options.context_file])
    for_people = context.get(CONTEXT_KEY) if stated is None else stated
    prompt = read_instructions(INSTRUCTIONS if options.instructions is None else options.instructions)
    source = agent_source(agent, prompt, for_people, options, tools, questions, instruction_files)
    return source, context


def open_conversations(path: Path | None, *, resumes: bool) -> Conversations | None:
    """Open the file of conversations, by default in the user's data folder.

    An unusable default is only reported, unless the chat ``resumes`` (E195).
    """
    try:
        kept = Conversations(conversations_file() if path is None else path)
    except ConversationsFileError as error:
        if path is not None or resumes:
            raise
        typer.echo(one_line(f"warning: the conversation is not kept: {error}"), err=True)
        return None
    protect_database(kept.path)
    return kept


def open_history(*, is_kept: bool) -> HistoryFile | None:
    """Return the input history, if any."""
    try:
        return HistoryFile(history_file()) if is_kept else None
    except ConversationsFileError:  # the warning about conversations has stated it
        return None
