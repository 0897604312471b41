"""The command ``run``: its options."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.agent_names import complete_agent
from kantan_agents.cli.terminal.agent_options import INSTRUCTIONS, AgentRunOptions
from kantan_agents.cli.terminal.grouped import grouped


@grouped
def run(
    invocation: typer.Context,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION", help="The question, or a /command; - reads a question from standard input."
        ),
    ],
    *,
    agent: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--agent",
            metavar="NAME|FILE",
            help="Run this agent from `agents list`, or of a .md file; it may delegate to the others.",
            show_default=False,
            autocompletion=complete_agent,
        ),
    ] = None,
    rules: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--rules",
            metavar="FILE",
            help="Tool rules of the run, as for `tools check`; - reads standard input. An error if the "
            "context has others.",
            show_default=False,
        ),
    ] = None,
    options: AgentRunOptions,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the completed context as one JSON object, which --context accepts again."
        ),
    ] = False,
    no_commands: Annotated[
        bool,
        typer.Option("--no-commands", help="Do not treat a question that starts with / as a command."),
    ] = False,
) -> None:
    """Answer one question, for use in scripts.

    The answer goes to standard output, an error as one line to standard error.

    A question such as /read notes.txt runs the tool read without a model.
    /help lists the commands. Write // for a question that starts with /.
    In a script, a question that you did not write may start with /: pass it
    with - or --no-commands. It is then never a command. user_rules in the
    context, or else its tool_rules, decide which commands may run; without
    them, a command may run every tool of the agent.

    With --tools DIR the agent may read the files in a folder, if the agent's
    own file allows it. Tools that change something need --yes TOOL; otherwise
    their calls are rejected.

    Without --model the default model of the SDK answers.
    With --agent, --model replaces short names or a missing model in its file.

    The run is recorded in the database that `kantan-agents traces` reads.
    If that file cannot be written, a line on standard error reports it, and the
    run continues. If --db names the file, that is an error. Without --db,
    OPENAI_AGENTS_DISABLE_TRACING=1 turns recording off.

    Example: printf %s "$QUESTION" | kantan-agents run - --agent support

    Exit codes: 0 answered, 1 the run failed, 2 bad arguments, files or
    providers, or an MCP server that is not trusted, 130 interrupted.
    """
    from kantan_agents.cli.agents.agent_to_run import read_agent
    from kantan_agents.cli.run import recording
    from kantan_agents.cli.terminal import inputs
    from kantan_agents.cli.terminal.protect_used import protect_used
    from kantan_agents.cli.tools.rules_file import add_rules

    options.check(invocation, agent)
    text = inputs.read_question(question)
    prompt = inputs.read_instructions(INSTRUCTIONS if options.instructions is None else options.instructions)
    context = inputs.read_context(options.context_file)
    if rules is not None:
        add_rules(context, rules, question)
    target = recording.target_of(options, invocation)
    named = None if agent is None else read_agent(agent)
    if options.root is not None:
        read = [rules, options.context_file, None if named is None else named.definition.path]
        protect_used(read, has_tools=True)

    from kantan_agents.cli.agents.instruction_files import instruction_files_for
    from kantan_agents.cli.hooks.hooks import Hooks
    from kantan_agents.cli.run.run import answer

    answer(
        text,
        named or prompt,
        options,
        hooks=Hooks.of_user(options.root, off=options.no_hooks),
        context=context,
        target=target,
        as_json=as_json,
        # Piped input may come from anyone, so it must not run tools.
        commands=question != inputs.STDIN and not no_commands,
        instruction_files=instruction_files_for(
            options.root,
            options.project_instructions,
            is_for_project=agent is not None or options.root is not None,
        ),
    )
