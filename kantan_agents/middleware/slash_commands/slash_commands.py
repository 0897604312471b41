"""``SlashCommands``: users run tools directly with ``/name``, without the model (spec protocol 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio.lowlevel
import anyio.to_thread
from agents import FunctionTool, RunContextWrapper, RunResult, RunState, Tool

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.core.context import check_context, fill_defaults
from kantan_agents.core.interception import Middleware, ToolCall, emit_refusal, redacted_new_input
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.errors import (
    CommandNotRunnableError,
    CommandSyntaxError,
    InvalidOptionError,
    KantanAgentsError,
    ToolNotAllowedError,
)
from kantan_agents.middleware.slash_commands.calls import UserCall
from kantan_agents.middleware.slash_commands.files import ARGUMENTS, begin_with_file, restore_limit
from kantan_agents.middleware.slash_commands.prompts import ServerPrompt, facts_of_command
from kantan_agents.middleware.slash_commands.results import message_result, tool_result
from kantan_agents.middleware.slash_commands.rules import UserGuard, user_layers
from kantan_agents.middleware.slash_commands.tools import AgentCommands, is_enabled
from kantan_agents.middleware.slash_commands.user_rules import USER_RULES, UserRules
from kantan_agents.models.rubric import Rubric
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import Decision, RuleLayers, ToolRulesMode
from kantan_agents.tools.commands import (
    HELP,
    HELP_COMMAND,
    PREFIX,
    Command,
    CommandLine,
    CommandRegistry,
    checked_aliases,
    checked_prefix,
    explanation,
    kind_of,
    name_in,
    overview,
    split_line,
    unknown_command,
)
from kantan_agents.tools.context_keys import check_context_keys
from kantan_agents.tools.mcp import mcp_prompt
from kantan_agents.tools.mcp.server_connections import ask_server
from kantan_agents.tools.rules_in_force import NO_LAYERS, rules_in_force
from kantan_agents.tools.skills import CommandFile, CommandLoader

TRIGGER = "trigger"
"""Key in the trace metadata of a command's run; the value is ``"user"``."""

_MAX_INLINE_CHARACTERS = 2000
_MAX_INLINE_COMMANDS = 50
_LITERAL = object()
_log = get_logger("kantan_agents.commands")


class SlashCommands(Middleware):
    """Lets users run tools with an input such as ``/read notes.txt``, which runs ``read`` without the model.

    ``user_rules`` decide what users may run; the model's ``tool_rules`` do not apply. The output is a normal
    result, with entries in ``context["result"]``, the history and the trace. ``/mcp__SERVER__PROMPT`` sends a
    prompt of an MCP server to the model. ``/help`` lists the commands that the user may run, and ``//text``
    sends the text ``/text`` to the model. Any other input goes to the model unchanged. With ``files``,
    ``/NAME`` also sends the text of a Markdown file to the model, with what was typed after the name.

    Only input from the application is parsed for commands: a str passed to an outermost run that starts
    outside of any open span. Input of nested runs (delegated agents, agents run by a tool, a guardrail or a
    hook) and of judges may be written by a model, so it is never parsed. Put this middleware last in
    ``middleware``, so that the others wrap it.

    Args:
        user_rules: The tools that users may run: a ``ToolRulesMode``, or rules of the same form as
            ``tool_rules``. ``context["user_rules"]``, a ``ToolRulesMode`` or ``UserRules``, adds rules to a
            single run and takes precedence.
        aliases: Additional command names: ``{"r": "read"}``.
        prefix: The prefix of commands. An input with a doubled prefix is sent to the model with one.
        files: Where Markdown files with commands are found. ``user_rules`` decide which of them users may
            run, by name. A file that has the name of another command is left out.
        models: The models that the ``model`` of a file may name, each as for ``Agent``. Other names have no
            effect.

    Raises:
        UnknownToolRulesModeError, ToolRulesTypeError, InvalidToolRulesError: E9, E18, E20, the rules are
            invalid.
        InvalidOptionError: E75, an alias or the prefix is invalid.
    """

    def __init__(
        self,
        user_rules: ToolRulesMode | UserRules | Mapping[str, Any],
        *,
        aliases: Mapping[str, str] | None = None,
        prefix: str = PREFIX,
        files: CommandLoader | None = None,
        models: Mapping[str, Any] | None = None,
    ) -> None:
        self._rules = (user_rules if isinstance(user_rules, UserRules) else UserRules(user_rules)).rules
        self._aliases = checked_aliases(aliases)
        self._prefix = checked_prefix(prefix)
        if not isinstance(files, CommandLoader | None):
            reason = f"must be a CommandLoader or None, not {type(files).__name__}"
            raise InvalidOptionError(option="files", reason=reason)
        if not isinstance(models, Mapping | None):
            reason = f"must be a mapping of names to models, not {type(models).__name__}"
            raise InvalidOptionError(option="models", reason=reason)
        self._files = files
        self._models = dict(models or {})
        self._commands = AgentCommands(self._aliases, self._prefix, files)

    def trace_metadata(self, run: Run) -> Mapping[str, Any]:
        """Mark the trace of a command as triggered by the user."""
        # Recorded before any middleware runs: later changes to the input may contain text of a model.
        kind = self._kind(run)
        run.state[self] = (kind, name_in(run.input, self._prefix) if kind == "command" else "")
        return {TRIGGER: "user"} if kind == "command" else {}

    async def run(self, run: Run, call_next: Next) -> None:
        """Run a command, or pass other input on.

        Raises:
            UnknownCommandError, CommandSyntaxError, CommandNotRunnableError: E54, E55, E56.
            PromptNotFetchedError: E39, an MCP server does not return its prompt.
            KantanAgentsError: The user rules refuse the call (E8, E10 to E14).
            Exception: Any exception of the tool.
        """
        kind = self._kind(run)
        typed, _ = run.state.get(self, ("text", ""))
        if kind != typed:
            kind = "text"
        if isinstance(run.input, RunState):
            restore_limit(run)
        if kind == "escaped":
            run.state[_LITERAL] = True  # a retry must not parse it as a command
            run.input = run.input[len(self._prefix) :]
        elif kind == "command":
            result = await self._run_command(run)
            if result is not None:
                run.result = result
                await call_next(run)
                await _remember(run, result)
                return
        await call_next(run)

    async def commands_of(self, agent: Any, context: dict[str, Any]) -> list[Command]:
        """Return the commands that the user of a context may run, to list or complete them.

        Args:
            agent: The ``Agent``. Its MCP servers are asked for their tools and prompts.
            context: The context that a run would get.

        Raises:
            KantanAgentsError: E18, E20, the rules in the context are invalid.
            Exception: Any exception of an MCP server.
        """
        sdk_agent: SDKAgent = agent.sdk_agent
        wrapper: RunContextWrapper[Any] = RunContextWrapper(context=context)
        registry = await self._commands.of(agent, wrapper, None)
        aliases = {
            alias: facts_of_command(command.target).name for alias, command in registry.aliases.items()
        }
        layers = user_layers(self._rules, context, agent.standing_rules, aliases)
        of_files = user_layers(self._rules, context, NO_LAYERS, aliases)
        return list((await _visible_commands(registry, layers, of_files, wrapper, sdk_agent)).values())

    def _kind(self, run: Run) -> str:
        if not isinstance(run.input, str) or run.is_nested or run.delegation is not None:
            return "text"
        if run.state.get(_LITERAL) or _is_judge(run):
            return "text"
        return kind_of(run.input, self._prefix)

    async def _run_command(self, run: Run) -> RunResult | None:
        """Return the result of a command; None if the run continues, with a prompt as its input."""
        # Errors that a later stage would raise must be raised before the tool runs.
        if run.mistake is not None:
            raise run.mistake
        fill_defaults(check_context(run.context), keep_history=run.agent.history > 0)
        standing: RuleLayers = run.agent.standing_rules
        rules_in_force(run.context, standing)
        check_context_keys(run, USER_RULES)
        user_layers(self._rules, run.context, standing)
        line = split_line(run.input, self._prefix)
        agent: SDKAgent = run.agent.sdk_agent
        wrapper: RunContextWrapper[Any] = RunContextWrapper(context=run.context)
        asks_help = line.name == HELP
        name = None if asks_help else line.name
        registry = await self._commands.of(run.agent, wrapper, name)
        found = None if asks_help else registry.find(line.name)
        aliases = {
            alias: facts_of_command(command.target).name for alias, command in registry.aliases.items()
        }
        layers = user_layers(self._rules, run.context, standing, aliases)
        if found is None:
            of_files = user_layers(self._rules, run.context, NO_LAYERS, aliases)
            visible = await _visible_commands(registry, layers, of_files, wrapper, agent)
            get_help = partial(self._help, line, registry, visible)
            answer = (
                get_help()
                if len(registry) <= _MAX_INLINE_COMMANDS
                else await anyio.to_thread.run_sync(get_help)
            )
            return message_result(run.input, answer, agent, wrapper)
        if line.name != run.state[self][1]:
            reason = "a middleware has replaced the command that the user typed"
            raise CommandNotRunnableError(command=f"{self._prefix}{found.name}", reason=reason)
        if isinstance(found.target, CommandFile):
            # It is not a tool, so the rules for tools do not apply to it; they apply in its run.
            standing = NO_LAYERS
            layers = user_layers(self._rules, run.context, standing, aliases)
        guard = UserGuard(facts_of_command(found.target), None, self._rules, standing, aliases)
        await self._check_tool(run, found.target, guard, layers, wrapper)
        if isinstance(found.target, CommandFile):
            await self._begin_with_file(run, found.target, line.rest, guard, wrapper)
            return None
        if isinstance(found.target, ServerPrompt):
            await self._send_prompt(run, found, found.target, line.rest, guard, wrapper)
            return None
        if not isinstance(found.target, FunctionTool):
            reason = "only functions and tools of MCP servers are commands, and it is neither"
            raise CommandNotRunnableError(command=f"{self._prefix}{found.name}", reason=reason)
        arguments = await self._read(found, line.rest)
        call = UserCall(run, agent, found.target, guard, wrapper, f"{self._prefix}{found.name}")
        outcome = await call.make(arguments)
        _log.info("command run", command=found.name, agent=run.agent.name)
        return tool_result(run.input, outcome, agent, wrapper)

    async def _read(self, command: Command, rest: str) -> str:
        read = partial(_arguments, command, rest, self._prefix)
        # Long arguments are parsed in a thread, to keep the event loop responsive.
        return read() if len(rest) <= _MAX_INLINE_CHARACTERS else await anyio.to_thread.run_sync(read)

    async def _send_prompt(
        self,
        run: Run,
        command: Command,
        prompt: ServerPrompt,
        rest: str,
        guard: UserGuard,
        wrapper: RunContextWrapper[Any],
    ) -> None:
        """Make the messages of a prompt the input of the run."""
        arguments = await self._read(command, rest)
        call = ToolCall(run, run.agent.name, None, guard.facts.name, arguments, "", wrapper)
        try:
            await guard.require(wrapper, arguments)
        except KantanAgentsError as error:
            await emit_refusal(call, error)
            raise
        fetch = partial(mcp_prompt, prompt.server, prompt.name, json.loads(arguments))
        fetched = await ask_server(prompt.server, fetch, run.agent.name)
        run.input = redacted_new_input(run, list(fetched.items), f"the prompt {command.name}")
        _log.info("prompt sent", command=command.name, agent=run.agent.name)

    async def _begin_with_file(
        self,
        run: Run,
        file: CommandFile,
        rest: str,
        guard: UserGuard,
        wrapper: RunContextWrapper[Any],
    ) -> None:
        """Make the text of a Markdown file the input of the run."""
        arguments = json.dumps({ARGUMENTS: rest}, ensure_ascii=False)
        call = ToolCall(run, run.agent.name, None, guard.facts.name, arguments, "", wrapper)
        try:
            await guard.require(wrapper, arguments)
        except KantanAgentsError as error:
            await emit_refusal(call, error)
            raise
        begin_with_file(run, file, rest, self._models)

    def _help(self, line: CommandLine, registry: CommandRegistry, visible: dict[str, Command]) -> str:
        """Return the text of ``/help``; raise E54 if the input is an unknown command instead."""
        if line.name != HELP:
            registry.require(line.name, lambda command: command.name in visible)
        wanted = HELP_COMMAND.read(line.rest, self._prefix).get("command", "").removeprefix(self._prefix)
        if wanted in ("", HELP):
            return overview(visible.values(), self._prefix)
        found = registry.find(wanted)
        if found is None or found.name not in visible:  # commands that the user may not run are not described
            nearest = registry.nearest(wanted, lambda command: command.name in visible)
            raise unknown_command(wanted, nearest, self._prefix)
        return explanation(found, registry.names_of(found), self._prefix)

    async def _check_tool(
        self,
        run: Run,
        target: Tool | ServerPrompt | CommandFile,
        guard: UserGuard,
        layers: RuleLayers,
        wrapper: RunContextWrapper[Any],
    ) -> None:
        """Refuse a command that the user may not run at all, before reporting errors in the arguments."""
        tool = None if isinstance(target, (ServerPrompt, CommandFile)) else target
        try:
            if not layers.decide_tool(guard.facts).allowed:
                await guard.require(wrapper, "")
            if tool is not None and not await is_enabled(tool, wrapper, run.agent.sdk_agent):
                off = ToolNotAllowedError(tool_name=guard.facts.name)
                decision = Decision(allowed=False, key="is_enabled", error=off)
                await guard.refuse(decision, NO_LAYERS, wrapper, "", policy="raise")
        except KantanAgentsError as error:
            call = ToolCall(run, run.agent.name, tool, guard.facts.name, "", "", wrapper)
            await emit_refusal(call, error)
            raise

    def __repr__(self) -> str:
        aliases = f", aliases={self._aliases!r}" if self._aliases else ""
        prefix = f", prefix={self._prefix!r}" if self._prefix != PREFIX else ""
        return f"SlashCommands({self._rules.to_dict()!r}{aliases}{prefix})"


async def _visible_commands(
    registry: CommandRegistry,
    layers: RuleLayers,
    of_files: RuleLayers,
    wrapper: RunContextWrapper[Any],
    agent: SDKAgent,
) -> dict[str, Command]:
    """Return the commands that this user may run, by name."""
    visible: dict[str, Command] = {}
    for number, command in enumerate(registry):
        if number % _MAX_INLINE_COMMANDS == _MAX_INLINE_COMMANDS - 1:
            await anyio.lowlevel.checkpoint()  # there may be thousands of tools
        target = command.target
        if not isinstance(target, (FunctionTool, ServerPrompt, CommandFile)):
            continue
        decided_by = of_files if isinstance(target, CommandFile) else layers
        if not decided_by.decide_tool(facts_of_command(target)).allowed:
            continue
        if isinstance(target, (ServerPrompt, CommandFile)) or await is_enabled(target, wrapper, agent):
            visible[command.name] = command
    return visible


def _is_judge(run: Run) -> bool:
    output = run.agent.sdk_agent.output_type
    kind = getattr(output, "output_type", output)
    return isinstance(kind, type) and issubclass(kind, Rubric)


def _arguments(command: Command, rest: str, prefix: str) -> str:
    """Return the text after a command, parsed as the JSON arguments of its tool."""
    arguments = command.read(rest, prefix)
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        problems = ["the arguments are nested too deeply"]
        usage = command.usage(prefix)
        raise CommandSyntaxError(command=f"{prefix}{command.name}", problems=problems, usage=usage) from None


async def _remember(run: Run, result: RunResult) -> None:
    """Add the command to the run's SDK session, if any, as the SDK does for its own runs."""
    session = run.options.get("session")
    if session is not None:
        await session.add_items(result.to_input_list())
