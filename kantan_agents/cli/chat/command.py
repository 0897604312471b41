"""The command ``chat``: its options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Optional

import typer

from kantan_agents.cli.terminal.agent_names import complete_agent
from kantan_agents.cli.terminal.agent_options import AgentRunOptions
from kantan_agents.cli.terminal.console import is_terminal
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.prices import PriceOption, read_prices
from kantan_agents.cli.terminal.shell_words import shell_words
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.extras import require_extra

_LISTED: Final = 50
CONVERSATIONS_VARIABLE = "KANTAN_AGENTS_CONVERSATIONS"


def _complete_conversation(invocation: typer.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    from kantan_agents.cli.chat.conversations import Conversations
    from kantan_agents.cli.chat.folders import conversations_file
    from kantan_agents.errors import ConversationsFileError

    named = invocation.params.get("conversations")
    try:
        path = Path(named) if named else conversations_file()
        if not path.is_file():
            return []
        store = Conversations(path)
        try:
            listed = store.newest(_LISTED)
        finally:
            store.close()
    except ConversationsFileError:
        return []
    choices = [("last", "the newest one"), *((one.id, one.title) for one in listed)]
    return list(shell_words(choices, incomplete))


@grouped
def chat(
    invocation: typer.Context,
    *,
    agent: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--agent",
            metavar="NAME|FILE|MODULE:NAME",
            help="Talk to this agent: from `agents list`, of a .md file, or an Agent in a Python module.",
            show_default=False,
            autocompletion=complete_agent,
        ),
    ] = None,
    rules: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--rules", metavar="FILE", help="Tool rules, as for `tools check`.", show_default=False),
    ] = None,
    resume: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--resume",
            metavar="ID",
            help="Continue a stored conversation: the start of its id, or last.",
            show_default=False,
            autocompletion=_complete_conversation,
        ),
    ] = None,
    options: AgentRunOptions,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Start in plan mode: agents only read, until you agree to a plan."),
    ] = False,
    plan_tools: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--plan-tool",
            metavar="TOOL",
            help="Permit this tool in plan mode as well, or only some calls, as in 'Bash(git log:*)' or "
            "mcp__SERVER. Calls that need an approval still wait for it. May be repeated.",
            show_default=False,
        ),
    ] = None,
    price: PriceOption = None,
    conversations: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--conversations",
            metavar="PATH",
            envvar=CONVERSATIONS_VARIABLE,
            help="File that stores conversations. Default: one in your folder for data.",
            show_default=False,
        ),
    ] = None,
    no_save: Annotated[
        bool, typer.Option("--no-save", help="Do not store the conversation, nor your input.")
    ] = False,
) -> None:
    """Talk to an agent in the terminal.

    A message may name files of the working folder with @. A message that
    starts with / is a command: /help lists them.

    Ctrl-C cancels an answer; pressed twice while no answer is in progress, it
    ends the chat, as Ctrl-D does. The conversation is stored in
    kantan-agents/conversations.sqlite3 in your folder for data, such as
    ~/.local/share, and --resume continues it.

    If standard input is not a terminal, each of its lines is a question, never
    a command or a file, and calls that need an approval are rejected. The
    answers go to standard output, everything else to standard error.

    An Agent of a Python module decides itself about --ask and
    --project-instructions; --model replaces its model.

    Example: kantan-agents chat --agent code-reviewer --tools . --write

    Exit codes: 0 ended, 1 an answer to a line failed, 2 bad arguments, files or
    agents, 129, 130 and 143 stopped by a signal.
    """
    options.check(invocation, agent)
    if no_save and resume is not None:
        raise InvalidOptionError(option="--no-save", reason="cannot be combined with --resume")
    named_by = invocation.get_parameter_source("conversations")
    if no_save and named_by is not None and named_by.name == "COMMANDLINE":
        raise InvalidOptionError(option="--no-save", reason="cannot be combined with --conversations")
    prices = read_prices(price)
    require_extra("chat")

    from kantan_agents.cli.agents.instruction_files import instruction_files_for
    from kantan_agents.cli.chat.plan_mode import PlanMode
    from kantan_agents.cli.chat.questions import Questions
    from kantan_agents.cli.chat.settings import Settings, open_conversations, open_history, read_start
    from kantan_agents.cli.hooks.hooks import Hooks
    from kantan_agents.cli.run import recording
    from kantan_agents.cli.terminal.sandbox import say_where_commands_run

    target = recording.target_of(options, invocation)
    hooks = Hooks.of_user(options.root, off=options.no_hooks)
    tools = options.tools()
    questions = Questions() if is_terminal() else None
    is_for_project = bool(tools) or agent is not None
    files = instruction_files_for(options.root, options.project_instructions, is_for_project=is_for_project)
    source, context = read_start(agent, rules, options, tools, questions, files)
    talks_to = source.agent()
    place = say_where_commands_run(talks_to.unguarded_tools, options.approved or (), options.sandbox)
    store = None if no_save else open_conversations(conversations, resumes=resume is not None)

    from kantan_agents.cli.chat.run import lead

    lead(
        Settings(
            talks_to,
            source,
            context,
            options,
            target,
            store,
            resume,
            prices,
            questions,
            hooks,
            place_of_commands=place,
            plan=PlanMode(is_on=plan, named=plan_tools or ()),
            history=open_history(is_kept=questions is not None and not no_save),
        )
    )
