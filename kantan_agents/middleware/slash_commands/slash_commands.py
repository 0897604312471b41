"""The middleware ``SlashCommands`` (spec protocol 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio.to_thread
from agents import FunctionTool, RunContextWrapper, RunResult, RunState

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.core.context import check_context, fill_defaults
from kantan_agents.core.interception import Middleware
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.errors import (
    CommandNotRunnableError,
    CommandSyntaxError,
    InvalidOptionError,
)
from kantan_agents.middleware.slash_commands.calls import UserCall
from kantan_agents.middleware.slash_commands.files import ARGUMENTS, begin_with_file, restore_command
from kantan_agents.middleware.slash_commands.permissions import (
    check_call,
    check_command,
    facts_of_command,
    help_text,
    visible_commands,
)
from kantan_agents.middleware.slash_commands.prompts import ServerPrompt, begin_with_prompt
from kantan_agents.middleware.slash_commands.results import message_result, tool_result
from kantan_agents.middleware.slash_commands.rules import UserGuard, user_layers
from kantan_agents.middleware.slash_commands.tools import AgentCommands
from kantan_agents.middleware.slash_commands.user_rules import USER_RULES, UserRules
from kantan_agents.models.rubric import Rubric
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import RuleLayers, ToolRulesMode
from kantan_agents.tools.commands import (
    HELP,
    PREFIX,
    Command,
    checked_aliases,
    checked_prefix,
    kind_of,
    name_in,
    split_line,
)
from kantan_agents.tools.context_keys import check_context_keys
from kantan_agents.tools.rules_in_force import NO_LAYERS, rules_in_force
from kantan_agents.tools.skills import CommandFile, CommandLoader

TRIGGER = "trigger"
"""Key in the trace metadata; its value is ``"user"``."""

_MAX_INLINE_CHARACTERS = 2000
_MAX_INLINE_COMMANDS = 50
_LITERAL = object()
_log = get_logger("kantan_agents.commands")


class SlashCommands(Middleware):
    """Lets users run tools with an input such as ``/read notes.txt``, which runs ``read`` without the model.

    ``user_rules`` determine the commands that users may run; the model's ``tool_rules`` do not apply.
    ``/help`` lists only these; other names are not secret, because they raise E8 instead of E54. ``//text``
    sends the text ``/text`` to the model. Any other input is sent to the model unchanged. With ``files``,
    ``/NAME`` sends the text of a Markdown file with the typed arguments to the model.
    ``/mcp__SERVER__PROMPT`` sends a prompt of an MCP server (E39 if the server rejects it; E55 if an argument
    is missing). A file or prompt with the name of another command is omitted, and this is logged.

    ``context["result"]`` is a ``RunResult`` without model responses. ``final_output`` is the tool's output as
    text: data as JSON, content of MCP servers as its text, other content in brackets, such as
    ``[image image/png]``. ``.output`` of the last of ``new_items`` is the returned value. A session and the
    history show the call to the next run; a conversation stored by the provider does not. ``output_dest`` is
    not written, and the agent's guardrails do not run. Events, trace, the tool's timeout, guardrails and
    hooks work as for a tool call. If the run fails after the tool has run, ``run_of(error).result`` is
    its result.

    Only input from the application is parsed for commands: a str passed to an outermost run that starts
    outside of any open span; an open ``trace(...)`` alone does not matter. Input of nested runs (delegated
    agents, agents run by a tool, a guardrail or a hook) and of judges may be written by a model, so it is
    never parsed. Put this middleware last in ``middleware``, so that the others wrap it. A middleware that
    repeats the whole run runs the tool again; one that replaces the command with another is error E56.

    Args:
        user_rules: The tools that users may run: a ``ToolRulesMode``, or rules of the same form as
            ``tool_rules``. ``context["user_rules"]``, a ``ToolRulesMode`` or ``UserRules``, adds rules to a
            single run and takes precedence.
        aliases: Additional command names: ``{"r": "read"}``. A tool named ``help`` needs one.
        prefix: The prefix of commands. An input with a doubled prefix is sent to the model with one.
        files: The Markdown files with commands. ``user_rules`` determine which of them users may run, by
            name. Their ``allowed-tools`` limit the run below all other rules, even after it is paused and
            resumed: the first line of the input states them.
        models: The models that the ``model`` of a file may name, each as for ``Agent``. Other names have no
            effect.

    Attributes:
        files: The loader of the files, or None.

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
        self.files = files
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
            KantanAgentsError: The user rules deny the call (E8, E10 to E14).
            Exception: Any exception of the tool.
        """
        kind = self._kind(run)
        typed, _ = run.state.get(self, ("text", ""))
        if kind != typed:
            kind = "text"
        if isinstance(run.input, RunState | list):
            restore_command(run, self._models)
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

    def has_command(self, run: Run) -> bool:
        """Return whether the user of a run has typed a command."""
        return bool(run.state.get(self, ("text", ""))[0] == "command")

    async def commands_of(self, agent: Any, context: dict[str, Any]) -> list[Command]:
        """Return the commands that the user of a context may run, to list or complete them.

        Args:
            agent: The ``Agent``. Its MCP servers are called to list their tools and prompts.
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
        return list((await visible_commands(registry, layers, of_files, wrapper, sdk_agent)).values())

    def _kind(self, run: Run) -> str:
        if not isinstance(run.input, str) or run.is_nested or run.delegation is not None:
            return "text"
        if run.state.get(_LITERAL) or _is_judge(run):
            return "text"
        return kind_of(run.input, self._prefix)

    async def _run_command(self, run: Run) -> RunResult | None:
        """None if the run continues, with a prompt as its input."""
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
            visible = await visible_commands(registry, layers, of_files, wrapper, agent)
            get_help = partial(help_text, line, registry, visible, self._prefix)
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
        await check_command(run, found.target, guard, layers, wrapper)
        if isinstance(found.target, CommandFile):
            await check_call(run, guard, wrapper, json.dumps({ARGUMENTS: line.rest}, ensure_ascii=False))
            begin_with_file(run, found.target, line.rest, self._models)
            return None
        if isinstance(found.target, ServerPrompt):
            arguments = await self._read(found, line.rest)
            await check_call(run, guard, wrapper, arguments)
            await begin_with_prompt(run, found.target, found.name, arguments)
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
        # Long arguments are parsed in a thread, to avoid blocking the event loop.
        return read() if len(rest) <= _MAX_INLINE_CHARACTERS else await anyio.to_thread.run_sync(read)

    def __repr__(self) -> str:
        aliases = f", aliases={self._aliases!r}" if self._aliases else ""
        prefix = f", prefix={self._prefix!r}" if self._prefix != PREFIX else ""
        return f"SlashCommands({self._rules.to_dict()!r}{aliases}{prefix})"


def _is_judge(run: Run) -> bool:
    output = run.agent.sdk_agent.output_type
    kind = getattr(output, "output_type", output)
    return isinstance(kind, type) and issubclass(kind, Rubric)


def _arguments(command: Command, rest: str, prefix: str) -> str:
    arguments = command.read(rest, prefix)
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        problems = ["the arguments are nested too deeply"]
        usage = command.usage(prefix)
        raise CommandSyntaxError(command=f"{prefix}{command.name}", problems=problems, usage=usage) from None


async def _remember(run: Run, result: RunResult) -> None:
    """Add the command to the SDK session, as the SDK does for its runs."""
    session = run.options.get("session")
    if session is not None:
        await session.add_items(result.to_input_list())
