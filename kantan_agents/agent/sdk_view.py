"""Makes an ``Agent`` usable wherever the SDK expects an ``agents.Agent``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import agents
from agents.tool import default_tool_error_function

from kantan_agents.agent.agent_options import OPTION_NAMES
from kantan_agents.agent.bridge import HandoffLinks, SDKAgent, link_handoffs
from kantan_agents.agent.options import check_options, checked_items
from kantan_agents.errors import FixedOptionError
from kantan_agents.tools.coerce import agent_as_tool

if TYPE_CHECKING:
    from agents import (
        AgentBase,
        RunConfig,
        RunContextWrapper,
        RunHooks,
        RunResult,
        RunResultStreaming,
        Session,
    )
    from agents.agent import AgentToolStreamEvent
    from agents.agent_tool_input import StructuredToolInputBuilder
    from agents.tool import ToolErrorFunction

    from kantan_agents.core.prompt import Prompt
    from kantan_agents.tools.guards.violations import RuleViolationPolicy
    from kantan_agents.tools.mcp.failure_policy import MCPFailurePolicy

    _SDKType = agents.Agent[Any]
else:
    _SDKType = object

_CLASS_FOR_SDK = "_class_for_sdk"
_ABOUT_ITSELF = frozenset({"_own", "__class__", "__dict__", "__mro__", "mro"})


class SDKView(_SDKType):
    """An Agent, as the SDK sees it.

    ``isinstance(agent, agents.Agent)`` falls back to ``__class__``, so the check passes. Attributes that an
    Agent lacks come from its SDK agent.
    """

    _sdk_agent: SDKAgent
    handoff_links: HandoffLinks
    name: str
    allow_env: bool
    history: int
    metadata: Any
    on_mcp_failure: MCPFailurePolicy
    on_rule_violation: RuleViolationPolicy
    output_dest: str | None
    runner: Any
    strict: bool

    if TYPE_CHECKING:  # for type checkers, an Agent is an agents.Agent
        instructions: str | Prompt  # type: ignore[assignment]
        tools: tuple[agents.Tool, ...]  # type: ignore[assignment]

    @property
    def sdk_agent(self) -> SDKAgent:
        """This agent as a plain SDK agent.

        The SDK accepts the Agent itself as well. Access updates the handoffs of all agents that can be
        reached from it.
        """
        if self.handoffs or self.handoff_links.linked:
            link_handoffs(self)
        return self._sdk_agent

    def as_tool(
        self,
        tool_name: str | None = None,
        tool_description: str | None = None,
        custom_output_extractor: (Callable[[RunResult | RunResultStreaming], Awaitable[str]] | None) = None,
        is_enabled: bool | Callable[[RunContextWrapper[Any], AgentBase[Any]], Awaitable[bool] | bool] = True,
        on_stream: Callable[[AgentToolStreamEvent], Awaitable[None] | None] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        max_turns: int | None = None,
        hooks: RunHooks[Any] | None = None,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        session: Session | None = None,
        failure_error_function: ToolErrorFunction | None = default_tool_error_function,
        needs_approval: (
            bool | Callable[[RunContextWrapper[Any], dict[str, Any], str], Awaitable[bool]]
        ) = False,
        parameters: type[Any] | None = None,
        input_builder: StructuredToolInputBuilder | None = None,
        include_input_schema: bool = False,
        **options: Any,
    ) -> agents.FunctionTool:
        """Return this agent as a tool for other agents, of this library or of the SDK.

        The agent works with the context and in the trace of the run that calls the tool, under the rules of
        that context and its own. The calling run's middleware applies; the agent's own ``middleware`` and
        ``pipeline`` do not. An agent in ``tools`` becomes the same tool with its defaults.

        Args:
            tool_name: Name of the tool; by default the agent's name, as far as its characters are valid.
            tool_description: Description for the model; by default the ``handoff_description``.
            custom_output_extractor: Makes the tool's output from the result of the agent's run.
            is_enabled: Whether the tool is shown to the model: a bool, or a function of the run's context and
                the calling agent.
            on_stream: Called with the events of the agent's run, which is then streamed.
            run_config: Configuration of the agent's run; by default the calling run's.
            max_turns: The most turns of the agent's run; by default the ``maxTurns`` of its subagent file.
            hooks: Hooks of the agent's run.
            previous_response_id: As for ``Runner.run``.
            conversation_id: As for ``Runner.run``.
            session: As for ``Runner.run``.
            failure_error_function: Makes the error message for the model if the agent's run fails; None
                raises.
            needs_approval: Whether a call waits for an approval: a bool, or a function of the run's context,
                the arguments and the id of the call.
            parameters: Type of the tool's arguments, a dataclass or a pydantic model; by default a single
                string.
            input_builder: Makes the agent's input from these arguments.
            include_input_schema: Whether that input contains the schema of ``parameters``.
            **options: Arguments of ``agents.Agent.as_tool`` in newer versions of the SDK.

        Raises:
            InvalidOptionError: E75, the SDK's ``as_tool`` has no such argument, or the agent's name gives no
                valid tool name.
        """
        given = {
            "custom_output_extractor": custom_output_extractor,
            "is_enabled": is_enabled,
            "on_stream": on_stream,
            "run_config": run_config,
            "max_turns": max_turns,
            "hooks": hooks,
            "previous_response_id": previous_response_id,
            "conversation_id": conversation_id,
            "session": session,
            "failure_error_function": failure_error_function,
            "needs_approval": needs_approval,
            "parameters": parameters,
            "input_builder": input_builder,
            "include_input_schema": include_input_schema,
        }
        code = agents.Agent.as_tool.__code__
        check_options(options, [*given, *code.co_varnames[: code.co_argcount]])
        return agent_as_tool(self.sdk_agent, tool_name, tool_description, **given, **options)

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            return _class_for_sdk(type(self)) if "_sdk_agent" in self.__dict__ else type(self)

        def __getattr__(self, attribute: str) -> Any:
            # Not for the protocols of the language, nor without an SDK agent, as in a copy.
            if not attribute.startswith("__") and "_sdk_agent" in self.__dict__:
                with suppress(AttributeError):
                    return getattr(self.sdk_agent, attribute)
            message = f"{type(self).__name__!r} object has no attribute {attribute!r}"
            raise AttributeError(message, name=attribute, obj=self)

        def __setattr__(self, name: str, value: object) -> None:
            own = self.__dict__
            if "_sdk_agent" in own:
                if name == "handoffs":
                    value = checked_items(name, value)
                elif name in OPTION_NAMES:
                    _check_own(self, name)
            object.__setattr__(self, name, value)

        def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
            # pickle rejects an object whose `__class__` is not its class.
            return (_blank, (type(self),), self.__dict__)


class _Field:
    """A field of the SDK's agent; subclasses may override it."""

    def __init__(self, name: str, read: Callable[[Any], Any]) -> None:
        self._name = name
        self._read = read

    def __get__(self, agent: Any, kind: type[Any] | None = None) -> Any:
        if agent is None:
            return self
        if "_sdk_agent" in vars(agent):
            return self._read(agent)
        raise AttributeError(self._name)


STORED = frozenset(
    {
        "allow_env",
        "history",
        "metadata",
        "name",
        "on_mcp_failure",
        "on_rule_violation",
        "output_dest",
        "pipeline",
        "runner",
        "strict",
    }
)
"""Options that an Agent stores under their own names; ``handoffs`` may be assigned."""

for _name in agents.Agent.__dataclass_fields__.keys() - {"name", "handoffs"}:
    setattr(SDKView, _name, _Field(_name, attrgetter(f"_sdk_agent.{_name}")))
setattr(SDKView, "instructions", _Field("instructions", attrgetter("_instructions")))  # noqa: B010
setattr(SDKView, "tools", _Field("tools", lambda agent: tuple(agent._sdk_agent.guarded_tools)))  # noqa: B010


def _check_own(agent: Any, name: str) -> None:
    """Raise E67 unless a subclass has this attribute, which may be set before ``__init__``."""
    if name in vars(agent) and name not in STORED:
        return
    error = FixedOptionError(option=name, agent=agent.name)
    if _of_subclass(agent):
        own_attribute = f"An attribute {name} of {type(agent).__name__} itself"
        error.__notes__ = [f"{own_attribute} must be set before super().__init__(), or be renamed."]
    raise error


def _of_subclass(agent: SDKView) -> bool:
    return type(agent).__module__.partition(".")[0] != __package__.partition(".")[0]


def _blank(kind: type[Any]) -> Any:
    return object.__new__(kind)


def _class_for_sdk(own: type[Any]) -> type[Any]:
    """Return a common subclass of ``own`` and the SDK's, for ``isinstance`` only.

    It looks like ``own``, because a subclass may use ``self.__class__`` like ``type(self)``.
    """
    known: type[Any] | None = vars(own).get(_CLASS_FOR_SDK)
    if known is None:
        try:
            known = _ClassForSDK(own.__name__, (SDKAgent,), {"_own": own})
        except TypeError:  # another layout: `own` has `__slots__`
            known = SDKAgent
        setattr(own, _CLASS_FOR_SDK, known)
    return known


class _Unregistered:
    """Hides the generated class from ``__init_subclass__``."""

    def __init_subclass__(cls, **_: Any) -> None:
        pass


class _ClassForSDK(type):
    _own: type[Any]

    def mro(cls) -> list[type]:
        # Not as bases: the own class would list this one in its `__subclasses__()`.
        own = cls.__dict__["_own"].__mro__
        both = [*own, *(kind for kind in SDKAgent.__mro__ if kind not in own)]
        return [cls, _Unregistered, *(kind for kind in both if kind is not object), object]

    def __getattribute__(cls, name: str) -> Any:
        # Not only by the order of classes: Python would cache attributes that have changed since.
        read = type.__getattribute__
        if name in _ABOUT_ITSELF:
            return read(cls, name)
        own = read(cls, "_own")
        return (own, SDKAgent) if name == "__bases__" else getattr(own, name)

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        return cls._own(*arguments, **options)

    def __setattr__(cls, name: str, value: object) -> None:
        setattr(cls._own, name, value)

    def __delattr__(cls, name: str) -> None:
        delattr(cls._own, name)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls._own is other

    def __hash__(cls) -> int:
        return hash(cls._own)

    def __repr__(cls) -> str:
        return repr(cls._own)
