"""The Agent: configuration, and the three ways to run it. What a run does stands in ``stages``."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import agents
from agents import ModelProvider, ModelSettings

from kantan_agents.bridge import (
    HandoffLinks,
    QuickSettings,
    SDKAgent,
    context_of,
    effective_run_config,
    link_handoffs,
)
from kantan_agents.context import check_context
from kantan_agents.errors import (
    InputTypeError,
    RendererResultError,
)
from kantan_agents.events import Emitter, Handler, Observers, Subscription, emitter_for
from kantan_agents.interception import Middleware, layers_of
from kantan_agents.models import keep_provider, resolve_model
from kantan_agents.options import (
    Context,
    Metadata,
    Renderer,
    checked_history,
    checked_instructions,
    checked_items,
    checked_metadata,
    checked_output_dest,
    checked_renderer,
)
from kantan_agents.pipeline import Pipeline, Run, Stage, current_run
from kantan_agents.portal import background_loop
from kantan_agents.prompt import Prompt
from kantan_agents.run_logs import is_debugged, log_event
from kantan_agents.run_stream import RunStream
from kantan_agents.running import drive, raising
from kantan_agents.stages import DEFAULT_STAGES
from kantan_agents.structured import OutputMode, agent_output, checked_delivery
from kantan_agents.tools import (
    AVAILABLE,
    Explanation,
    ProviderChoice,
    RuleViolationPolicy,
    checked_policy,
    choose_providers,
    explain_layers,
    provider_layers,
    rules_in_force,
    tools_with_providers,
)
from kantan_agents.tracing.ids import new_run_id
from kantan_agents.tracing.metadata import finite, prompt_metadata, run_metadata
from kantan_agents.tracing.sqlite import share_sqlite_tracers

_DEFAULT_PIPELINE = Pipeline(DEFAULT_STAGES)


class Agent:
    """An agent: who it is, what it runs on, and what happens around a run.

    Made once and run often, from any task or thread at the same time; a run keeps nothing on it.

    Args:
        name: Name of the agent; ``agent_name`` in every trace.
        instructions: What the agent is told: a text or, with a version to it, a ``Prompt``. Markers
            such as ``{{ $ctx.user.name }}`` are filled from the run's context.
        model: A model name for kantan-llm (``"gpt-5-mini"``, ``"gemini-2.5-pro"``,
            ``"ollama/llama3.2"``), kantan-llm's ``AsyncClientBundle`` or ``KantanAsyncLLM``, an SDK
            ``Model``, or None for the SDK's default.
        model_provider_factory: Makes the SDK ``ModelProvider`` of each run; ``model`` is then a name
            that it knows.
        model_settings: The SDK's ``ModelSettings`` (temperature, ...).
        tools: Plain functions, or tools of the SDK.
        handoffs: Agents, SDK agents or ``agents.handoff(...)`` objects the run may be handed to.
        mcp_servers: MCP servers of the SDK whose tools may be used.
        tool_providers: Whose tools and rules come with installed packages (spec 9): ``"available"``, all
            that can be loaded; ``"all"``, and one that cannot is an error; a list of names; or None.
        on_rule_violation: What happens when the tool rules refuse a call: ``"feedback"`` tells the
            model, ``"raise"`` ends the run, a function of the ``RuleViolation`` says which.
        renderer: Replaces the template engine: ``(text, context)`` or ``(text, context, allow_env)``,
            sync or async.
        allow_env: Whether ``{{ $env.NAME }}`` may read environment variables (spec 8.1).
        metadata: More trace metadata: a mapping, or a function from the context to one. It never
            overrides the standard keys (spec 4).
        output_type: Type of the structured output: a pydantic model, dataclass, TypedDict, attrs class,
            ``list[...]``, a union, or a JSON Schema as a dict; ``RUBRIC`` makes a judge (spec 5.2).
        output_mode: How the model is asked for it: ``"native"``, the provider's own JSON schema; ``"tool"``,
            a final tool whose parameters are the schema; ``"prompt"``, the schema at the end of the
            instructions; ``"auto"``, what the provider supports, or else the first that works.
        output_repairs: How often a reply that does not fit goes back to the model with what is wrong.
        output_dest: Key of the context under which a structured output is stored as a dict (spec 11).
        history: How many entries ``context["history"]`` keeps, the newest; 0 keeps none (spec 10).
        middleware: The user's own code around the run, the first one outermost: stages, or ``Middleware``
            objects, which may also wrap each model call and each tool call.
        pipeline: Replaces the standard pipeline, ``Pipeline(DEFAULT_STAGES)``.
        runner: What runs the SDK agent; ``agents.Runner``.
        **sdk_agent_options: Anything else ``agents.Agent`` takes: ``handoff_description``,
            ``input_guardrails``, ``hooks``, ...

    Raises:
        InstructionsRequiredError: E1, there are no instructions.
        ToolNameRequiredError: E4, a tool has no name.
        ToolProviderInterfaceError, ToolProviderFailedError, DuplicateToolError,
            UnknownToolProviderError: E7, E22, E23, E24, something is wrong with the tool providers.
        ModelNotFoundError: E19, kantan-llm cannot resolve ``model``.
        OutputSchemaError: E41, ``output_type`` cannot be expressed as a JSON schema.
        NotAStageError, DuplicateStageError: E73, E71, something is wrong with the middleware.
        InvalidOptionError: E75, another option has a value it cannot have.
    """

    def __init__(
        self,
        name: str,
        instructions: str | Prompt = None,  # type: ignore[assignment]  # E1 rather than TypeError
        *,
        model: object = None,
        model_provider_factory: Callable[[], ModelProvider] | None = None,
        model_settings: ModelSettings | None = None,
        tools: Iterable[Any] | None = (),
        handoffs: Iterable[Any] | None = (),
        mcp_servers: Iterable[Any] | None = (),
        tool_providers: ProviderChoice = AVAILABLE,
        on_rule_violation: RuleViolationPolicy = "feedback",
        renderer: Renderer | None = None,
        allow_env: bool = False,
        metadata: Metadata | None = None,
        output_type: Any = None,
        output_mode: OutputMode = "auto",
        output_repairs: int = 1,
        output_dest: str | None = None,
        history: int = 50,
        middleware: Iterable[Stage | Middleware | tuple[str, Stage | Middleware]] = (),
        pipeline: Pipeline | None = None,
        runner: Any = agents.Runner,
        **sdk_agent_options: Any,
    ) -> None:
        self.name = name
        self.instructions = checked_instructions(instructions)
        self.allow_env = allow_env
        self.metadata = checked_metadata(metadata)
        self.output_dest = checked_output_dest(output_dest)
        self.history = checked_history(history)
        delivery = checked_delivery(output_mode, output_repairs)
        self.handoffs: list[Any] = checked_items("handoffs", handoffs)
        self.handoff_links = HandoffLinks()
        self.on_rule_violation = checked_policy(on_rule_violation)
        providers = choose_providers(tool_providers)
        self.standing_rules = provider_layers(providers)
        self._layers = layers_of(checked_items("middleware", middleware))
        self.pipeline = (pipeline or _DEFAULT_PIPELINE).prepend(*self._layers.stages)
        self._observers = Observers()
        self.runner = runner
        self._text = instructions.text if isinstance(instructions, Prompt) else instructions
        self._render, self._render_args = checked_renderer(renderer)
        self._standard_metadata = prompt_metadata(name, self.instructions)
        self._provider_factory = model_provider_factory
        resolved = resolve_model(model, model_provider_factory)
        if model_settings is not None:
            sdk_agent_options["model_settings"] = model_settings
        self._sdk_agent = SDKAgent.make(
            self,
            tools_with_providers(checked_items("tools", tools), providers),
            name=name,
            model=resolved.model,
            mcp_servers=checked_items("mcp_servers", mcp_servers),
            output_type=agent_output(output_type, delivery),
            **sdk_agent_options,
        )
        if resolved.settings is not None and model_settings is None:
            # Set afterwards: the SDK's constructor takes defaults for a model it cannot name away.
            self._sdk_agent.model_settings = QuickSettings.adopt(resolved.settings)

    @property
    def sdk_agent(self) -> SDKAgent:
        """The SDK's view of this agent, for ``agents.handoff``, ``as_tool``, ``RunState.from_json``, ...

        The hand-offs of all agents that can be reached from it are brought up to date.
        """
        link_handoffs(self)
        return self._sdk_agent

    async def run_async(self, input: Any, context: Context | None = None, **runner_options: Any) -> Context:
        """Run the agent and return the context, completed (spec 2.7, 2.9).

        Args:
            input: A str, a list of the SDK's input items, or a ``RunState`` to be resumed.
            context: The caller's dict; the same object is returned. None begins a new one or, with a
                ``RunState``, goes on with the state's.
            **runner_options: For ``Runner.run``: ``max_turns``, ``session``, ``hooks``,
                ``run_config``, ``previous_response_id``, ...

        Raises:
            KantanAgentsError: E5, E6, E18, E20 for the context, E70 to E78 for what surrounds it.
            Exception: What the SDK, the model's client, a tool that may raise, or a middleware
                raised, unchanged. ``error.kantan_run`` is the failed ``Run``.

        Returns:
            The context: ``result`` is the SDK's ``RunResult``, ``history`` and the ``output_dest`` are
            up to date. After an error it is as it was on entry, apart from defaults filled in.
        """
        return await drive(*self._new_run(input, context, runner_options))

    def stream(self, input: Any, context: Context | None = None, **runner_options: Any) -> RunStream:
        """Run the agent and watch the run while it goes on.

            async with agent.stream("Hello") as run:
                async for event in run:
                    print(event.to_json())
            print(run.context["result"].final_output)

        The same stages do the same as in ``run_async``; the models stream their answers. Leaving the block
        early cancels the run. Runs that its tools start are heard as well, with this one as
        ``parent_run_id``.

        Args:
            input: As for ``run_async``.
            context: As for ``run_async``.
            **runner_options: As for ``run_async``.

        Returns:
            The run to be entered with ``async with``. Iterating over it yields ``Event`` objects and raises,
            after the last one, what ``run_async`` would have raised.
        """

        def begin(handler: Handler) -> tuple[Run, Callable[[], Awaitable[Context]]]:
            run, pipeline = self._new_run(input, context, dict(runner_options), handler)
            run.is_streamed = True
            return run, lambda: drive(run, pipeline)

        return RunStream(begin)

    def subscribe(self, handler: Handler) -> Subscription:
        """Tell ``handler`` of the events of every run of this agent that begins from now on.

        Args:
            handler: Called with each ``Event``; sync, or async and then awaited before the run goes on. One
                that raises is logged and never breaks a run.

        Returns:
            The subscription; ``cancel()`` ends it, and it is a context manager that does.

        Raises:
            InvalidOptionError: E75, it cannot be called.
        """
        return self._observers.add(handler)

    def run(self, input: Any, context: Context | None = None, **runner_options: Any) -> Context:
        """Run the agent and wait for it; arguments, result and errors are those of ``run_async``.

        Works with or without a running event loop and from any thread, through one background loop
        for the process. Ctrl-C cancels the run. Inside a running loop it blocks that loop: there,
        ``await agent.run_async(...)`` is the better choice.
        """
        share_sqlite_tracers()
        return background_loop.run(lambda: self.run_async(input, context, **runner_options))

    async def render(self, context: Context) -> str:
        """Return the instructions for ``context``.

        Raises:
            RenderError: E77, a value of the context cannot be made into text.
            RendererResultError: E76, the renderer returned something else than a str.
        """
        text = self._render(*(self._text, context, self.allow_env)[: self._render_args])
        if inspect.isawaitable(text):
            text = await text
        if not isinstance(text, str):
            raise RendererResultError(got=type(text).__name__)
        return text

    def explain_tool(
        self,
        tool: Any,
        arguments: Mapping[str, Any] | str | None = None,
        context: Context | None = None,
    ) -> Explanation:
        """Say whether this agent may use a tool, and which rule of which layer decides that.

        Args:
            tool: Name of a tool of this agent, or any tool.
            arguments: Arguments of a call, a mapping or JSON text; None asks about the tool as such.
            context: A run's context; its ``tool_rules`` are the explicit rules.

        Raises:
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules cannot be read.
        """
        explicit = check_context({} if context is None else context)
        layers = rules_in_force(explicit, self.standing_rules)
        return explain_layers(layers, self._sdk_agent.tool_named(tool) or tool, arguments)

    def trace_metadata(self, context: Context, run_id: str) -> dict[str, Any]:
        """Return the trace metadata of a run: the user's and, winning, the standard keys (spec 4)."""
        user = self.metadata
        if callable(user):
            user = checked_metadata(user(context))
        return run_metadata(user or {}, self._standard_metadata, run_id)

    def _new_run(
        self, input: Any, context: Context | None, options: dict[str, Any], *handlers: Handler
    ) -> tuple[Run, Pipeline]:
        """Return the run and its pipeline: without its stages if the user's metadata function has raised."""
        if not isinstance(input, (str, list, agents.RunState)):
            raise InputTypeError(got=type(input).__name__)
        if context is None:
            context = context_of(input) if isinstance(input, agents.RunState) else {}
        run_id = new_run_id()
        given = options.pop("run_config", None)
        config, callers_provider = effective_run_config(given, self._provider_factory)
        pipeline = self.pipeline
        try:
            # A context that is no dict is refused by the first stage, inside the trace.
            metadata = self.trace_metadata(context if isinstance(context, dict) else {}, run_id)
        except Exception as error:  # noqa: BLE001 - raised again as soon as the trace is open
            metadata = run_metadata({}, self._standard_metadata, run_id)
            # Inside the middleware, which may keep the input out of the trace.
            pipeline = Pipeline([*self._layers.stages, ("trace metadata", raising(error))])
        if config.trace_metadata:
            metadata = {**finite(config.trace_metadata), **metadata}
        run = Run(self, input, context, run_id, options, config, metadata, callers_provider)
        run.model_calls, run.tool_calls = self._layers.model_calls, self._layers.tool_calls
        run.events = self._events_of(run, handlers)
        if self._provider_factory is not None and callers_provider is None:
            keep_provider(run, self._provider_factory, config.model_provider)
        return run, pipeline

    def _events_of(self, run: Run, handlers: tuple[Handler, ...]) -> Emitter | None:
        parent = current_run.get()
        handlers = (*handlers, *self._observers.handlers)
        if is_debugged():
            handlers = (*handlers, log_event)
        above = (parent.id, parent.events) if parent is not None else None
        return emitter_for(run.id, self.name, parent=above, handlers=handlers)

    def __repr__(self) -> str:
        prompt = self.instructions
        shown = f", prompt={prompt.name}@{prompt.version}" if isinstance(prompt, Prompt) else ""
        return f"Agent({self.name!r}, model={self._sdk_agent.model!r}{shown})"
