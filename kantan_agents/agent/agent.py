"""``Agent``; the steps of its runs are in ``stages``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, overload

import agents
from agents import ModelProvider, ModelSettings, RunContextWrapper
from typing_extensions import Self, TypeVar

from kantan_agents.agent.agent_options import AgentOptions
from kantan_agents.agent.bridge import (
    HandoffLinks,
    QuickSettings,
    SDKAgent,
    list_servers,
    offers_of,
)
from kantan_agents.agent.bridge.captured.definitions import recorded_options
from kantan_agents.agent.from_definition import AgentFile, agent_from_file
from kantan_agents.agent.options import (
    Metadata,
    Renderer,
    checked_flag,
    checked_instructions,
    checked_items,
    checked_metadata,
    checked_prompt,
    checked_renderer,
    standard_renderer,
    unrendered,
)
from kantan_agents.agent.per_run import PerRun, limited
from kantan_agents.agent.running.drive import drive
from kantan_agents.agent.running.new import new_run
from kantan_agents.agent.running.no_event_loop import no_event_loop
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.agent.running.stream import RunStream
from kantan_agents.agent.sdk_view import STORED, SDKView
from kantan_agents.agent.stages import DEFAULT_STAGES
from kantan_agents.core.context import Context, check_context
from kantan_agents.core.events import Handler, Observers, Subscription
from kantan_agents.core.interception import Middleware, layers_of
from kantan_agents.core.pipeline import OutputT_co, Pipeline, Run, RunContext, Stage, current_run
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import DurableNotStartedError, InvalidOptionError, RendererResultError
from kantan_agents.models.named_model import check_configured
from kantan_agents.models.resolve import resolve_model
from kantan_agents.models.structured import OutputMode, OutputType, agent_output, checked_delivery
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.tools.explain import Explanation, explain_layers
from kantan_agents.tools.explain_named import explain_named
from kantan_agents.tools.guards.violations import RuleViolationPolicy
from kantan_agents.tools.mcp.failure_policy import MCPFailurePolicy
from kantan_agents.tools.origins import origins_text, tool_origins
from kantan_agents.tools.providers.cache import loaded_providers
from kantan_agents.tools.providers.providers import (
    AVAILABLE,
    ProviderChoice,
    provider_layers,
    providers_of_agent,
    tools_with_providers,
)
from kantan_agents.tools.retrieval import ToolRetrieval, ToolSelection
from kantan_agents.tools.retrieval.options import checked_retrieval
from kantan_agents.tools.retrieval.selection import select_tools
from kantan_agents.tools.rules_in_force import rules_in_force
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.kantan_tracers import share_sqlite_tracers
from kantan_agents.traces.metadata import origin_metadata, prompt_metadata, run_metadata

if TYPE_CHECKING:
    from kantan_agents.tools.mcp import ConfiguredServers
    from kantan_agents.tools.skills import SkillLoader

_DEFAULT_PIPELINE = Pipeline(DEFAULT_STAGES)
_OutputT = TypeVar("_OutputT", default=str)
ValueT = TypeVar("ValueT")
"""Type of the context's values: checkers infer ``dict[str, str]`` for some dicts, not ``dict[str, Any]``."""


class Agent(SDKView, Generic[OutputT_co]):
    """An agent: its instructions, model, tools and the code around its runs.

    Create it once and run it often, from any task or thread, also concurrently. Runs store no state on it.

    ``Agent[Report]`` is the type of an agent whose final output is a ``Report``; checkers infer it from
    ``output_type``. ``Agent`` alone means ``Agent[str]``. Write ``Agent[Any]`` for an agent with any output.

    Args:
        name: Name of the agent; ``agent_name`` in every trace.
        instructions: The system prompt: a string, or a ``Prompt`` with a version. The run's context fills
            placeholders such as ``{{ $ctx.user.name }}``. A ``Rollout`` chooses one of several prompts for
            each run.
        model: A model name for kantan-llm (``"gpt-6.1-terra"``, ``"gemini-2.5-pro"``, ``"ollama/llama3.2"``),
            kantan-llm's ``AsyncClientBundle`` or ``KantanAsyncLLM``, an SDK ``Model``, a custom ``Provider``,
            or None for the SDK's default.
        model_provider_factory: Returns the SDK ``ModelProvider`` of a run. ``model`` is then a model name for
            that provider.
        model_settings: The SDK's ``ModelSettings`` (temperature, ...).
        tools: Plain functions, tools of the SDK, or agents. An agent becomes a tool with its name and
            ``handoff_description``.
        handoffs: Agents, SDK agents or ``agents.handoff(...)`` objects that may take over the run.
        mcp_servers: MCP servers of the SDK. The agent may use their tools. Servers of the SDK's classes and
            their subclasses are connected again after a failure; an object that wraps one needs the attribute
            ``wrapped_server`` for that.
        tool_providers: The tool providers from installed packages whose tools and rules apply (spec 9):
            ``"available"`` for all that can be loaded; ``"all"``, which raises if one cannot be loaded; a
            list of names; or None. ``use_tool_providers`` limits them for the process.
        tool_retrieval: How to select tools for an input if the agent has too many to show the model. None
            shows all of them.
        on_rule_violation: What happens when the tool rules deny a call: ``"feedback"`` sends the error to the
            model, ``"raise"`` aborts the run, and a function of the ``RuleViolation`` returns one of these.
        on_mcp_failure: What a run does if an MCP server cannot be used: ``"raise"`` aborts it with E28,
            ``"continue"`` omits the server's tools. A mapping has a choice for each server by name; servers
            without an entry have ``"raise"``.
        strict: Whether a wrong name in a run's rules is an error instead of a warning: a missing tool in
            ``allow``, ``deny`` or ``params``, a missing parameter in ``params`` (E20), or a context key that
            is almost ``tool_rules`` (E75). A placeholder in the instructions without a value is then error
            E48 instead of an empty string.
        renderer: Replaces the template engine: ``(text, context)`` or ``(text, context, allow_env)``, sync or
            async.
        allow_env: Whether ``{{ $env.NAME }}`` may read environment variables (spec 8.1).
        metadata: More trace metadata: a mapping, or a function from the context to one. It never overrides
            the standard keys (spec 4).
        output_type: Type of the structured output: a pydantic model, dataclass, TypedDict, attrs class,
            ``list[...]``, a union, or a JSON Schema as a dict, whose references are never fetched;
            ``RUBRIC`` makes a judge (spec 5.2).
        output_mode: How the request demands it: ``"native"``, the provider's own JSON schema; ``"tool"``,
            a final tool whose parameters are the schema; ``"prompt"``, the schema at the end of the
            instructions; ``"auto"``, the mode that the provider supports, or else the first that works.
        output_repairs: How often an invalid reply is sent back to the model with its errors.
        output_dest: Context key under which a structured output is stored as a dict (spec 11).
        history: How many entries ``context["history"]`` stores; the oldest are dropped. A run adds two. With
            0, the key is neither read nor written. After a handoff, this agent's number applies (spec 10).
        middleware: Your own code around the run, the first entry outermost: stages, or ``Middleware``
            objects, which may also wrap each model call and each tool call.
        pipeline: Replaces the standard pipeline, ``Pipeline(DEFAULT_STAGES)``: a ``Pipeline``, or a list of
            all its stages.
        runner: The runner of the SDK agent, by default ``agents.Runner``.
        **sdk_agent_options: Any other argument of ``agents.Agent``: ``handoff_description``,
            ``input_guardrails``, ``hooks``, ...

    Raises:
        InstructionsRequiredError: E1, there are no instructions.
        ToolNameRequiredError: E4, a tool has no name.
        ToolSchemaError: E29, no schema can describe the parameters of a function in ``tools``.
        ToolProviderInterfaceError: E7, a tool provider lacks a method.
        ToolProviderFailedError: E22, a tool provider cannot be imported or its methods fail.
        DuplicateToolError: E23, two tool providers have a tool of the same name.
        UnknownToolProviderError: E24, ``tool_providers`` names a provider that is not installed.
        ModelNotFoundError: E19, the name of the ``model`` is unknown. If only its key is missing, the run
            raises E47.
        OutputSchemaError: E41, ``output_type`` cannot be expressed as a JSON schema.
        NotAStageError: E73, an entry of ``middleware`` or ``pipeline`` is not a stage.
        DuplicateStageError: E71, two stages have the same name.
        UnknownRetrievedToolError: E58, ``tool_retrieval`` names tools that the agent does not have.
        InvalidOptionError: E75, another option has an invalid value.
        RolloutConflictError: E111, another rollout of this agent is in this process.
    """

    arm_of: Callable[[], Agent[Any] | None] | None = None
    """A reference to the agent whose rollout has this one as an arm; None for every other agent."""

    _background = background_loop  # while the interpreter exits, this module may have lost the name

    _file: AgentFile | None = None

    def __init__(
        self,
        name: str,
        instructions: str | Prompt | PerRun = None,  # type: ignore[assignment]  # E1 rather than TypeError
        *,
        model: object = None,
        model_provider_factory: Callable[[], ModelProvider] | None = None,
        model_settings: ModelSettings | None = None,
        tools: Iterable[Any] | None = (),
        handoffs: Iterable[Any] | None = (),
        mcp_servers: Iterable[Any] | None = (),
        tool_providers: ProviderChoice = AVAILABLE,
        tool_retrieval: ToolRetrieval | None = None,
        on_rule_violation: RuleViolationPolicy = "feedback",
        on_mcp_failure: MCPFailurePolicy = "raise",
        strict: bool = False,
        renderer: Renderer | None = None,
        allow_env: bool = False,
        metadata: Metadata | None = None,
        output_type: OutputType[OutputT_co] | None = None,
        output_mode: OutputMode = "auto",
        output_repairs: int = 1,
        output_dest: str | None = None,
        history: int = 50,
        middleware: Iterable[Stage | Middleware | tuple[str, Stage | Middleware]] = (),
        pipeline: Pipeline | Iterable[Stage | tuple[str, Stage]] | None = None,
        runner: Any = agents.Runner,
        **sdk_agent_options: Any,
    ) -> None:
        arguments = dict(locals())  # first, so that it has the arguments only
        del arguments["self"]
        self._create(AgentOptions.checked(arguments))

    def _create(self, given: AgentOptions) -> None:
        self.given = given
        vars(self).update({name: getattr(given, name) for name in STORED})
        tools, middleware, renderer = given.tools, given.middleware, given.renderer
        if self._file is not None:
            tools, middleware, renderer = self._file.applied_to(given)
        prompt = given.sdk_agent_options.get("prompt")
        choice = given.instructions if isinstance(given.instructions, PerRun) else None
        text = given.instructions if choice is None else choice.control
        own = checked_instructions(text, has_prompt=prompt is not None)
        self._instructions = own
        delivery = checked_delivery(given.output_mode, given.output_repairs)
        self.handoffs: list[Any] = given.handoffs
        self.handoff_links = HandoffLinks()
        providers = providers_of_agent(given.tool_providers)
        self.standing_rules = provider_layers(providers)
        self.unguarded_tools = tools_with_providers(tools, providers)
        self.layers = layers_of(middleware)
        for named in self.layers.named_tools:
            named.add_agent(self)
        self.pipeline = (given.pipeline or _DEFAULT_PIPELINE).prepend(*self.layers.stages)
        self.observers = Observers()
        self._text = own.text if isinstance(own, Prompt) else own
        is_literal = isinstance(own, Prompt) and own.literal
        self._render, self._render_args = checked_renderer(
            unrendered if is_literal else renderer, standard_renderer(given.name, own, strict=given.strict)
        )
        # Of the loaded providers too: a delegated agent has inherited their tools in its own list.
        known = (*loaded_providers(), *providers)
        self._origins = origins_text(tool_origins(self.unguarded_tools, known, given.mcp_servers))
        self.standard_metadata = prompt_metadata(given.name, own, prompt) | origin_metadata(self._origins)
        self.provider_factory = given.model_provider_factory
        resolved = resolve_model(given.model, given.model_provider_factory)
        self._model = resolved.model
        sdk_agent_options = dict(given.sdk_agent_options)
        if given.model_settings is not None:
            sdk_agent_options["model_settings"] = given.model_settings
        if prompt is not None:
            sdk_agent_options["prompt"] = checked_prompt(prompt)
        self._sdk_agent = SDKAgent.make(
            self,
            self.unguarded_tools,
            checked_retrieval(given.tool_retrieval),
            name=given.name,
            model=resolved.model,
            mcp_servers=list(given.mcp_servers),
            output_type=agent_output(given.output_type, delivery),
            **sdk_agent_options,
        )
        if resolved.settings is not None and given.model_settings is None:
            # Set afterwards: the SDK's constructor drops defaults for a model whose name it does not know.
            self._sdk_agent.model_settings = QuickSettings.adopt(resolved.settings)
        self._choose = None if choice is None else choice.chooser(self)
        if self._choose is not None:
            self.standing_rules = limited(self.standing_rules, self._choose)

    @classmethod
    def from_definition(
        cls,
        definition: AgentDefinition,
        *,
        tools: Iterable[Any] | None = (),
        model: object = None,
        models: Mapping[str, Any] | None = None,
        skills: SkillLoader | None = None,
        mcp_configuration: ConfiguredServers | None = None,
        output_type: OutputType[_OutputT] | None = None,
        **options: Any,
    ) -> Agent[_OutputT]:
        """Create an agent from a subagent file (Markdown).

        The agent may use only the ``tools`` that the file allows, and no run's rules can extend this limit.
        If the file names a missing tool, it is logged, or is error E20 with ``strict``.

        The file's ``context`` is copied into the run's context, where the caller's values win, and shown to
        the model after the instructions. Its ``maxTurns`` applies unless the caller passes ``max_turns``, its
        ``skills`` if the caller passes ``skills``. Its ``mcpServers`` start with the first run if the caller
        passes ``mcp_configuration``. Its other entries, such as hooks, have no effect.

        Args:
            definition: The definition, as returned by ``AgentLoader.get_agent`` or ``AgentDefinition.load``.
            tools: The available tools, as for ``Agent``.
            model: The model if the file names none or has ``inherit``.
            models: Models for short names such as ``sonnet`` in files, each as for ``model``; None means the
                argument ``model``. They override ``kantan_agents.subagent_files.MODELS``. Other names go to
                kantan-llm.
            skills: Loads the skills that the file names; the agent gets them with ``skill_tools``. If the
                file names none, it gets all if the tool ``Skill`` is in its list, else none.
            mcp_configuration: The result of ``configured_servers``: it defines the names in ``mcpServers``,
                the trusted files, and the environment variables that may be read. None starts no server.
            output_type: As for ``Agent``.
            **options: As for ``Agent``.

        Raises:
            EmptyPromptTextError: E2, the file has no prompt.
            KantanAgentsError: E181 to E184, ``mcpServers`` of the file has mistakes, a server is not
                configured or not trusted, or a variable is missing; only with ``mcp_configuration``.
            InvalidToolRulesError: E20, the file names tools that do not exist, and ``strict`` is True.
            KantanAgentsError: Any error of ``Agent``.
        """
        agent: Agent[_OutputT] = agent_from_file(
            cls,
            AgentFile(definition, models, skills),
            model=model,
            options={**options, "tools": tools, "output_type": output_type},
            mcp_configuration=mcp_configuration,
        )
        return agent

    @overload
    def clone(self, *, output_type: None, **changes: Any) -> Agent[str]: ...
    @overload
    def clone(self, *, output_type: OutputType[_OutputT], **changes: Any) -> Agent[_OutputT]: ...
    @overload
    def clone(self, **changes: Any) -> Self: ...
    def clone(self, **changes: Any) -> Any:
        """Return a new agent like this one, with some options changed.

            brief = agent.clone(name="brief", instructions="Answer in one sentence.")
            more = agent.clone(tools=[*agent.tools, search])

        All checks of ``Agent`` apply. Both agents share the objects in the options: middleware (and so its
        budget), tools, MCP servers, the ``tool_retrieval``. Lists are copied, ``handoffs`` in its current
        state. Changes on ``sdk_agent`` and subscriptions are not copied. A copy of an agent from a subagent
        file has the file's limit on tools, context and ``maxTurns``. ``__init__`` of a subclass is not
        called; other attributes are copied.

        Args:
            **changes: Options of ``Agent``, by name.

        Raises:
            InvalidOptionError: E75, an option does not exist, or its value is invalid.
            KantanAgentsError: Any error of ``Agent``.
        """
        options = {"handoffs": self.handoffs, **changes}
        if "tools" in changes:
            # Tools of `agent.tools` without their guards: the copy guards them itself.
            given_tools = checked_items("tools", changes["tools"])
            options["tools"] = [self._sdk_agent.as_given(tool) for tool in given_tools]
        copied: Agent[Any] = object.__new__(type(self))
        vars(copied).update((name, value) for name, value in vars(self).items() if name != "_sdk_agent")
        copied._create(self.given.changed(**options))
        if copied._file is not None:
            copied._file.bind(copied)
        if "tool_providers" not in changes:  # the only option that these rules depend on
            copied.standing_rules = limited(self.standing_rules, copied._choose)
        return copied

    async def run_async(
        self, input: Any, context: dict[str, ValueT] | None = None, **runner_options: Any
    ) -> RunContext[OutputT_co]:
        """Run the agent and return the context with the result (spec 2.7, 2.9).

        Args:
            input: A str, a list of the SDK's input items, or a ``RunState`` to be resumed.
            context: The caller's dict; the same object is returned. None creates a new one or, with a
                ``RunState``, uses the context of the state.
            **runner_options: For ``Runner.run``: ``max_turns``, ``session``, ``hooks``, ``run_config``,
                ``previous_response_id``, ...

        Raises:
            KantanAgentsError: E5, E6, E18, E20 for the context, E47 for a model without a key, E70 to E78 for
                stages and options.
            EventLoopError: E68, the code does not run on asyncio, but on trio for example.
            InterpreterExitError: E26, the interpreter removes its modules.
            Exception: The error of the SDK, the model's client, a tool that may raise, or a middleware,
                unchanged. ``run_of(error)`` is the failed ``Run``.

        Returns:
            The context: ``result`` is the SDK's ``RunResult``, which ``run_result(context)`` returns typed;
            ``history`` and the ``output_dest`` are up to date. After an error, the context is restored, apart
            from defaults that were filled in.
        """
        self._background.check_exit()
        if asyncio._get_running_loop() is None:
            raise no_event_loop()
        chosen = None if self._choose is None else self._choose(input, context)
        return await drive(*new_run(self, input, context, runner_options, chosen=chosen))

    def stream(
        self,
        input: Any,
        context: dict[str, ValueT] | None = None,
        *,
        raw_events: bool = False,
        **runner_options: Any,
    ) -> RunStream[OutputT_co]:
        """Run the agent and receive its events while it is running.

            async with agent.stream("Hello") as run:
                async for event in run:
                    print(event.to_json())
            print(run_result(run.context).final_output)

        The stages are the same as for ``run_async``, but the models stream their answers. Leaving the block
        early cancels the run. The events include the events of runs that its tools start; their
        ``parent_run_id`` is the id of this run.

        Args:
            input: As for ``run_async``.
            context: As for ``run_async``.
            raw_events: Whether the stream also contains a ``RawResponseEvent`` for each event that a model
                streams, with the SDK's object as its ``data``.
            **runner_options: As for ``run_async``.

        Returns:
            The run, for ``async with``. It yields ``Event`` objects; after the last one it raises the error
            that ``run_async`` would have raised. If the run was canceled, it just ends.

        Raises:
            InterpreterExitError: E26, the interpreter removes its modules.
        """
        self._background.check_exit()

        def begin(handler: Handler) -> tuple[Run, Callable[[], Awaitable[RunContext[OutputT_co]]]]:
            chosen = None if self._choose is None else self._choose(input, context)
            run, pipeline = new_run(self, input, context, dict(runner_options), handler, chosen=chosen)
            run.is_streamed = True
            return run, lambda: drive(run, pipeline)

        return RunStream(begin, raw_events=checked_flag("raw_events", raw_events))

    def subscribe(self, handler: Handler, *, raw_events: bool = False) -> Subscription:
        """Call ``handler`` with the events of every run of this agent that starts from now on.

        Args:
            handler: Called with each ``Event``. It may be sync or async; the run waits for an async one. An
                exception it raises is logged and does not affect the run.
            raw_events: Whether it also receives a ``RawResponseEvent`` for each event of a model's stream.
                Only streamed runs have them.

        Returns:
            The subscription. End it with ``cancel()``, or use it as a context manager.

        Raises:
            InvalidOptionError: E75, ``handler`` is not callable.
        """
        return self.observers.add(handler, raw_events=raw_events)

    def run(
        self, input: Any, context: dict[str, ValueT] | None = None, **runner_options: Any
    ) -> RunContext[OutputT_co]:
        """Run the agent synchronously; arguments, result and errors are the same as for ``run_async``.

        Works from any thread, with or without a running event loop, through one background loop per process.
        Everything that the run raises reaches the caller, even ``SystemExit``; other runs continue. It blocks
        an event loop that is already running: use ``await agent.run_async(...)`` there.

        - Ctrl-C cancels the run, which has five seconds to clean up, and raises ``KeyboardInterrupt``.
        - Inside an async tool of another sync run, in a forked process, or if the background loop does not
          start the run within a second, the run gets its own loop.
        - In ``atexit`` handlers and in threads while the interpreter exits, runs work; sync tools then run
          one after the other. A daemon thread that is still in ``run`` at exit gets E26.
        - In a signal handler, a run may wait forever for a lock that the interrupted code holds, such as a
          logging handler's. Set a flag there instead.
        - If a task of the run raises ``GeneratorExit``, coroutines that await it cannot clean up
          asynchronously; the caller may get a ``RuntimeError`` from Python instead.

        Raises:
            RunInCollectorError: E25, the garbage collector calls it, in ``__del__`` for example.
            InterpreterExitError: E26, the interpreter exits before the run has ended.
        """
        self._background.check_exit()
        share_sqlite_tracers()
        return self._background.run(lambda: self.run_async(input, context, **runner_options))

    async def enqueue(
        self,
        input: str | list[Any],
        context: dict[str, Any] | None = None,
        *,
        queue: str,
        priority: int | None = None,
        dedup_key: str | None = None,
        tenant: str | None = None,
        delay: float | None = None,
        **runner_options: Any,
    ) -> str:
        """Add a run to a queue, from which a worker takes it, and return its id immediately.

        The agent needs ``Durable()`` among its middleware, and a ``DurableRuns`` must be started in this
        process, even if it does not work on this queue. ``await runs.result(run_id)`` waits for the outcome.

        Args:
            input: A str, or a list of the SDK's input items.
            context: The context of the run. It is stored, so it must be JSON data.
            queue: Name of the queue.
            priority: 1 runs first, larger numbers later; None comes before all of them.
            dedup_key: While a run with this key is waiting or active, no second one is queued; the id of the
                first is returned. A run that waits for approval has left the queue. Not for queues with
                limits for each tenant.
            tenant: Whose limits apply.
            delay: Seconds before the run may start.
            **runner_options: As for ``run_async``, as far as they can be stored: ``max_turns``,
                ``previous_response_id``, ``conversation_id``, ``session``.

        Raises:
            DurableNotStartedError: E150, the agent has no ``Durable()``, or no ``DurableRuns`` is started.
            NotStorableError: E151, the context or an option cannot be stored.
            InputTypeError, InvalidOptionError: E78, E75, an argument is of another type or invalid.
            DurableDatabaseError: E156, the database cannot be used.
        """
        durable = next((one for one in self.layers.middleware if hasattr(one, "enqueue")), None)
        if durable is None:
            raise DurableNotStartedError(agent=self.name, reason="it has no Durable() among its middleware")
        run_id: str = await durable.enqueue(
            self,
            input,
            context,
            queue=queue,
            priority=priority,
            dedup_key=dedup_key,
            tenant=tenant,
            delay=delay,
            run_options=runner_options,
        )
        return run_id

    def explain_tool(
        self,
        tool: Any,
        arguments: Mapping[str, Any] | str | None = None,
        context: dict[str, ValueT] | None = None,
    ) -> Explanation:
        """Explain whether this agent may use a tool, and which rule of which layer decides it.

        The tools of an MCP server are known once it has listed them, in a run for example. Until then, the
        answer names the unknown parts, and ``explain_tool_async`` lists them.

        Args:
            tool: Name of a tool of this agent, as the model or a rule writes it, or any tool. The name of an
                MCP server, such as ``"mcp__files"``, means all its tools.
            arguments: Arguments of a call, as a mapping or a JSON string. None checks the tool without a
                call.
            context: A run's context; its ``tool_rules`` are the explicit rules.

        Raises:
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules are not valid.
        """
        explicit = check_context({} if context is None else context)
        layers = rules_in_force(explicit, self.standing_rules)
        offers = offers_of(self._sdk_agent)
        if isinstance(tool, str):
            local = self._sdk_agent.local_tool_named(tool)
            if local is None:
                return explain_named(layers, tool, arguments, offers)
            tool = local
        return explain_layers(layers, tool, arguments, offers.around)

    async def explain_tool_async(
        self,
        tool: Any,
        arguments: Mapping[str, Any] | str | None = None,
        context: dict[str, ValueT] | None = None,
    ) -> Explanation:
        """List the tools of the agent's MCP servers, then answer as ``explain_tool``.

        A server that cannot be listed, such as one that is not connected, is logged; ``unknown`` in the
        answer has the parts that depend on it.

        Args:
            tool: As for ``explain_tool``.
            arguments: As for ``explain_tool``.
            context: As for ``explain_tool``. The tool filters of the servers get it as well.

        Raises:
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules are not valid.
        """
        explicit = check_context({} if context is None else context)
        await list_servers(self._sdk_agent, explicit)
        return self.explain_tool(tool, arguments, explicit)

    async def select_tools(self, input: Any, context: dict[str, ValueT] | None = None) -> ToolSelection:
        """Return the tools that ``tool_retrieval`` would select at the start of a run with this input.

        Args:
            input: As for ``run_async``. The user's latest message is the query.
            context: A run's context; its ``tool_rules`` are the explicit rules.

        Raises:
            InvalidOptionError: E75, the agent has no ``tool_retrieval``.
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules are not valid.
        """
        tool_index = self._sdk_agent.tool_index
        if tool_index is None:
            raise InvalidOptionError(
                option="tool_retrieval", reason="this agent has none: it shows all its tools"
            )
        explicit = check_context({} if context is None else context)
        tool_index = await self._sdk_agent.index_with_servers(RunContextWrapper(explicit)) or tool_index
        return await select_tools(tool_index, input, rules_in_force(explicit, self.standing_rules))

    def check_model(self) -> None:
        """Raise the error of a missing key or URL now, not in the first run. A service calls it at startup.

        Nothing is sent. It checks the environment for a model name or None, and no other ``model``.

        Raises:
            ModelNotConfiguredError: E47, a key or URL is missing or cannot be used.
        """
        check_configured(self._model)

    async def render(self, context: Context) -> str:
        """Return the instructions, filled from ``context``.

        Raises:
            RenderError: E77, a value of the context cannot be converted to a string.
            RendererResultError: E76, the renderer did not return a str.
        """
        run = current_run.get()
        if run is not None and run._tape is not None:
            run._tape.context(self.name, context)
        text = self._render(*(self._text, context, self.allow_env)[: self._render_args])
        if not isinstance(text, str) and inspect.isawaitable(text):
            text = await text
        if not isinstance(text, str):
            raise RendererResultError(got=type(text).__name__)
        if run is not None and run._capture is not None:
            run._capture.rendered(self, context)
        return text

    @property
    def recorded_options(self) -> Any:
        """The options that shape its requests, as JSON; recorded with each run."""
        return recorded_options(self)

    def like_recorded(self, record: RunRecord) -> Agent[Any]:
        """Return the agent that repeats a recorded run: this one, or one that it chooses from."""
        return self if self._choose is None else self._choose.recorded(record)

    def trace_metadata(self, context: Context, run_id: str) -> dict[str, Any]:
        """Return the trace metadata of a run: the user's, overridden by the standard keys (spec 4)."""
        user = self.metadata
        if user is not None and callable(user):
            user = checked_metadata(user(context))
        return run_metadata(user or {}, self.standard_metadata, run_id)

    def __repr__(self) -> str:
        prompt = self.instructions
        shown = f", prompt={prompt.name}@{prompt.version}" if isinstance(prompt, Prompt) else ""
        tools = f", tools=[{self._origins}]" if self._origins else ""
        return f"Agent({self.name!r}, model={self._sdk_agent.model!r}{shown}{tools})"
