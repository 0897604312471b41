"""``run``: one question to an agent."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

import typer

from kantan_agents.agent import Agent
from kantan_agents.agent.bridge.model_answers import usage_of_run
from kantan_agents.agent.delegation.approvals import answer_approvals
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.agent.stages.trim_history import output_text
from kantan_agents.cli.agents.agent_to_run import AgentToRun
from kantan_agents.cli.agents.instruction_files import InstructionFiles
from kantan_agents.cli.agents.pinned_files import PinnedFiles
from kantan_agents.cli.hooks.hooks import Hooks
from kantan_agents.cli.run.agent_from_file import agent_from_file
from kantan_agents.cli.run.instruction_options import instruction_options
from kantan_agents.cli.run.recording import RecordingTarget, collect_runs, recording_to
from kantan_agents.cli.terminal.agent_options import AgentRunOptions
from kantan_agents.cli.terminal.approvals import ApprovalAnswer, AskedApprovals, AskedCall, approving
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line, printable
from kantan_agents.cli.terminal.replaced import say_replaced
from kantan_agents.cli.terminal.sandbox import say_where_commands_run
from kantan_agents.core.interception import Middleware
from kantan_agents.core.pipeline import Run, Stage, run_result
from kantan_agents.middleware import Approve, SlashCommands, UserRules
from kantan_agents.middleware.slash_commands.user_rules import USER_RULES
from kantan_agents.models.finish_reasons import answer_cut_off, finish_reason
from kantan_agents.models.structured import json_data
from kantan_agents.tool_rules import rules_of
from kantan_agents.tools.commands import PREFIX, kind_of, name_in
from kantan_agents.tools.skills import CommandLoader

AGENT_NAME = "assistant"


def answer(
    question: str,
    instructions: str | AgentToRun,
    options: AgentRunOptions,
    *,
    context: dict[str, Any],
    target: RecordingTarget | None,
    as_json: bool,
    commands: bool,
    instruction_files: InstructionFiles | None,
    hooks: Hooks,
) -> None:
    """Answer ``question``, and print the answer or the completed context.

    Calls that need an approval beyond ``options`` are denied. With ``commands``, ``/read notes.txt`` runs a
    tool or a Markdown file. A failed recording is reported after the answer.
    """
    runs: list[Run] = []
    stated = context.get(USER_RULES)
    if stated is not None:
        # The user at the terminal wrote or chose the file, so its rules count like rules in code.
        context[USER_RULES] = UserRules(stated)
    # Children are appended after their parent, so the first run is the agent's own.
    middleware: list[Stage | Middleware] = [collect_runs(runs)]
    if commands:
        rules = context.get("tool_rules") if stated is None else stated
        # A question needs no working directory.
        files = CommandLoader() if question.startswith(PREFIX) else None
        if files is not None:
            files.pin()
            shadowed = files.load_commands_now().shadowed
            say_replaced("command", shadowed, files.directories, [name_in(question)])
        middleware.append(SlashCommands(user_rules(rules), files=files))
    if options.asked:
        middleware.append(Approve(options.asked))
    given, approved, model = options.tools(), options.approved or (), options.model
    say_where_commands_run(given, approved, options.sandbox)
    if isinstance(instructions, str):
        pinned = PinnedFiles(instruction_files=instruction_files)
        more = instruction_options(instruction_files)
        agent = Agent(AGENT_NAME, instructions, model=model, middleware=middleware, tools=given, **more)
    else:
        pinned = instructions.pinned
        pinned.instruction_files = instruction_files
        agent = agent_from_file(instructions, model, middleware, given, asks=True)
    turns = options.turns_of(agent)
    given_question = _submitted(question, hooks, is_command=commands and kind_of(question) == "command")
    with recording_to(target) as recorder:
        run = background_loop.run(
            lambda: _finished(agent, given_question, context, runs, approved, hooks, turns)
        )
        if as_json:
            typer.echo(context_json(run, recorded=recorder is not None))
        else:
            text = output_text(run.result)
            # A pipe gets every byte of the answer; a terminal gets no control characters.
            typer.echo(printable(text) if sys.stdout.isatty() else text, color=True)
        if answer_cut_off(run.result):
            typer.echo("note: the answer was cut off, so that its end is missing", err=True)
    background_loop.run(lambda: hooks.stop(output_text(run.result)))
    _report_changes(pinned)


def _submitted(question: str, hooks: Hooks, *, is_command: bool) -> str:
    """Return a question with additions from hooks; for a command, hooks only decide about it."""
    objections, added = background_loop.run(lambda: hooks.submit(question))
    if objections:
        typer.echo(f"error: the question is not sent: {one_line(objections)}", err=True)
        raise typer.Exit(EXIT_FAILED)
    return question if is_command else question + added


def _report_changes(pinned: PinnedFiles) -> None:
    changed = pinned.changed()
    for line in () if changed is None else changed.lines:
        typer.echo(f"note: {one_line(line)}; this run has used it as it was at its start", err=True)


async def _finished(
    agent: Agent[Any],
    question: str,
    context: dict[str, Any],
    runs: list[Run],
    approved: Collection[str],
    hooks: Hooks,
    turns: Mapping[str, Any],
) -> Run:
    hooks.guard_runs()
    approvals = AskedApprovals(_refuse, lambda: None, approved)
    token = answer_approvals.set(approvals.decide_inside)
    given: Any = question
    try:
        while True:
            earlier = len(runs)
            await agent.run_async(given, context, **turns)
            given = await approvals.decide(context["result"])
            if given is None:
                return runs[earlier]
    finally:
        answer_approvals.reset(token)


async def _refuse(asked: AskedCall) -> ApprovalAnswer:
    name = one_line(asked.call.tool)
    typer.echo(f"note: a call of {name} was not approved; --yes {approving(asked)} approves them", err=True)
    return ApprovalAnswer("no", "Nobody could be asked.")


def user_rules(rules: Any) -> UserRules:
    """Return the rules for slash commands, limited by the context's."""
    stated = {} if rules is None else rules_of(rules)
    return UserRules({**stated, "allow": "*"} if stated.get("allow") is None else stated)


def context_json(run: Run, *, recorded: bool) -> str:
    """Return the context as JSON; the trace id only if ``recorded``."""
    context = {**run.context, "result": result_data(run, recorded=recorded)}
    return json_text(context, default=_as_json)


def _as_json(value: Any) -> Any:
    return value.to_dict() if isinstance(value, UserRules) else str(value)


def result_data(run: Run, *, recorded: bool) -> dict[str, Any]:
    """Return the useful part of ``RunResult`` as data."""
    result = run_result(run.context)
    return {
        "final_output": json_data(result.final_output),
        "last_agent": result.last_agent.name,
        "run_id": run.id,
        "trace_id": run.trace_id if recorded else None,
        "usage": usage_of_run(result.context_wrapper.usage, result.raw_responses),
        "finish_reason": finish_reason(result),
    }
