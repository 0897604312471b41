"""E1 to E19: codes and messages of the specification's error table, and E46 and E47: models."""

from __future__ import annotations

import reprlib
from typing import Any, ClassVar

from kantan_agents.errors.root import KantanAgentsError

_shown = reprlib.Repr()
_shown.maxother = 120


class InstructionsRequiredError(KantanAgentsError):
    """An Agent was created without instructions, or with None (spec 7.1).

    Fix: Pass a str or a ``Prompt``.
    """

    code = "E1"
    template = "instructions is required"


class EmptyPromptTextError(KantanAgentsError):
    """``Prompt.text`` is empty, blank or not a str (spec 7.2).

    Fix: For an agent without instructions, pass ``""`` to ``Agent`` instead of a ``Prompt``.
    """

    code = "E2"
    template = "Prompt.text must not be empty"


class EmptyPromptNameError(KantanAgentsError):
    """``Prompt.name`` or ``Prompt.version`` is empty, blank or not a str (spec 7.3).

    Fix: Pass both. The version can be any str, such as a date.
    """

    code = "E3"
    template = "Prompt.name and Prompt.version must not be empty"


class ToolNameRequiredError(KantanAgentsError):
    """An entry of ``tools`` is neither an SDK tool nor a named function: a lambda, for example.

    Fix: Write a function with ``def``, or create a tool with ``agents.function_tool(name_override=...)``.

    Attributes:
        tool: The object given as a tool.
    """

    code = "E4"
    template = "Tool must define name"
    tool: Any

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        # The specification fixes the message to the letter; Python 3.11 shows notes below it.
        to_do = "Write a function with `def`, or make a tool with agents.function_tool(name_override=...)."
        self.__notes__ = [f"The tool is {_shown.repr(self.tool)}. {to_do}"]


class ContextTypeError(KantanAgentsError):
    """The context of a run is not a dict.

    Fix: Pass a dict, or None for a new one. Put your own objects under a key of the dict.

    Attributes:
        got: Name of the given type.
    """

    code = "E5"
    is_bad_input = True
    template = "Context must be a dict"
    got: str


class HistoryTypeError(KantanAgentsError):
    """``context["history"]`` is neither a list nor None.

    Fix: Delete the key, set it to a list, or create the agent with ``history=0``.

    Attributes:
        got: Name of the type found.
    """

    code = "E6"
    is_bad_input = True
    template = "Context history must be a list"
    got: str


class ToolProviderInterfaceError(KantanAgentsError):
    """An installed tool provider lacks ``list_tools`` or ``get_tool_rules`` (spec 9.4).

    Fix: Correct the provider, or select others with ``tool_providers=[...]``.

    Attributes:
        provider: Name of its entry point.
        distribution: Name of the distribution that declares it.
    """

    code = "E7"
    is_bad_input = True
    template = "Tool provider must implement list_tools and get_tool_rules"
    provider: str
    distribution: str

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        # The specification fixes the message to the letter; Python 3.11 shows notes below it.
        self.__notes__ = [f"The entry point is {self.provider!r} of {self.distribution}."]


class ToolNotAllowedError(KantanAgentsError):
    """The tool rules do not allow this tool or this call, or the tool is disabled.

    By default the model gets this message as the result of the tool, and the run continues.

    Fix: Add the tool to ``allow``, or remove it from ``deny``. ``agent.explain_tool`` shows which rule
    decides.

    Attributes:
        tool_name: Name of the called tool.
    """

    code = "E8"
    template = "Tool is not allowed: {tool_name}"
    tool_name: str


class UnknownToolRulesModeError(KantanAgentsError):
    """The tool rules are a member of an enum other than ``ToolRulesMode``.

    Fix: Pass ``ToolRulesMode.ALLOW_ALL``, ``DENY_ALL`` or ``RECOMMENDED``, or a dict of rules.

    Attributes:
        mode: The given value.
    """

    code = "E9"
    is_bad_input = True
    template = "Unknown ToolRulesMode: {mode}"
    mode: Any


class ToolInputError(KantanAgentsError):
    """The arguments of a tool call are not a valid JSON object.

    If a rule checks the parameters, duplicate keys, numbers that are not finite and invalid Unicode are
    errors too: parsers disagree about their meaning.

    Fix: Nothing if a model wrote the arguments: it gets this message and can try again.

    Attributes:
        tool_name: Name of the tool.
        reason: The mistake in the arguments.
    """

    code = "E10"
    template = "Tool input must be a JSON object"
    tool_name: str
    reason: str


class ToolParameterError(KantanAgentsError):
    """An argument of a tool breaks a parameter rule; each keyword has its own subclass (spec 8.3).

    Fix: Nothing if a model wrote the argument: it gets this message. Otherwise correct the rule; ``limit`` is
    its value.

    Attributes:
        tool_name: Name of the tool.
        param_name: The parameter as in the rule, such as ``"filter.limit"``.
        limit: The value of the keyword.
        keyword: The JSON Schema keyword.
    """

    tool_name: str
    param_name: str
    limit: Any
    keyword: ClassVar[str]


class ToolParameterTypeError(ToolParameterError):
    """An argument has a JSON type that its rule, or the tool itself, does not allow."""

    code = "E11"
    keyword = "type"
    template = "Tool parameter type mismatch: {tool_name}.{param_name}"


class ToolParameterEnumError(ToolParameterError):
    """An argument is not one of the values in ``enum``."""

    code = "E12"
    keyword = "enum"
    template = "Tool parameter enum mismatch: {tool_name}.{param_name}"


class ToolParameterMinLengthError(ToolParameterError):
    """A str is shorter than ``minLength``."""

    code = "E13"
    keyword = "minLength"
    template = "Tool parameter minLength mismatch: {tool_name}.{param_name}"


class ToolParameterMaxLengthError(ToolParameterError):
    """A str is longer than ``maxLength``."""

    code = "E14"
    keyword = "maxLength"
    template = "Tool parameter maxLength mismatch: {tool_name}.{param_name}"


class ToolParameterPatternError(ToolParameterError):
    """The ``pattern`` does not occur in a str.

    Fix: Nothing if a model wrote the argument. A pattern may match anywhere: to match the whole str, add
    ``^`` and ``$``.
    """

    code = "E15"
    keyword = "pattern"
    template = "Tool parameter pattern mismatch: {tool_name}.{param_name}"


class ToolParameterMinimumError(ToolParameterError):
    """A number is less than ``minimum``."""

    code = "E16"
    keyword = "minimum"
    template = "Tool parameter minimum mismatch: {tool_name}.{param_name}"


class ToolParameterMaximumError(ToolParameterError):
    """A number is greater than ``maximum``."""

    code = "E17"
    keyword = "maximum"
    template = "Tool parameter maximum mismatch: {tool_name}.{param_name}"


PARAMETER_ERRORS: dict[str, type[ToolParameterError]] = {
    error.keyword: error
    for error in (
        ToolParameterTypeError,
        ToolParameterEnumError,
        ToolParameterMinLengthError,
        ToolParameterMaxLengthError,
        ToolParameterPatternError,
        ToolParameterMinimumError,
        ToolParameterMaximumError,
    )
}
"""The keywords of parameter rules and their errors."""


class ToolRulesTypeError(KantanAgentsError):
    """``context["tool_rules"]`` is not a dict (spec 7.4), or ``context["user_rules"]`` is not ``UserRules``.

    Fix: ``context["tool_rules"] = {"allow": ..., "deny": ...}``, ``context["user_rules"] =
    UserRules({"allow": ..., "deny": ...})``.

    Attributes:
        got: Name of the type found.
        detail: What follows the message if the rules are those for users; else empty.
    """

    code = "E18"
    is_bad_input = True
    template = "Tool rules must be a dict"
    got: str
    detail: str = ""

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if self.detail:
            self.args = (f"{self.args[0]}{self.detail}",)


class ModelNotFoundError(KantanAgentsError):
    """kantan-llm cannot find the provider of this model name; its own error is the ``__cause__``.

    The note below the message has the nearest names, and the variables of local servers.

    Fix: Correct the name, or add the provider, as in ``ollama/llama3.2``.

    Attributes:
        model: The given name.
    """

    code = "E19"
    is_bad_input = True
    template = "Model not found: {model}"
    model: str


class ModelNotConfiguredError(ModelNotFoundError):
    """The provider of a model name is known, but its key or its URL is missing or cannot be used.

    Fix: Set the environment variable ``error.variable``, or pass a client with a key as ``model``.

    Attributes:
        model: The given name.
        variable: The environment variable to set; None if it is unknown.
        reason: What is wrong, and what to do.
    """

    code = "E47"
    template = "Model {model} is not configured: {reason}"
    variable: str | None
    reason: str


class ClientLoopError(KantanAgentsError):
    """A client with a custom transport failed on a second event loop.

    Its ``http_client`` has a transport that is neither httpx's nor a wrapper of one, and that holds
    connections of the loop it was first used on.

    Attributes:
        base_url: URL of the API that the client is for.
        transport: Module and class of the transport.
        reason: The error of the transport, which is also the ``__cause__``.
    """

    code = "E46"
    template = (
        "The client of {base_url} was used on another event loop before, and its transport {transport} "
        "failed on this one ({reason}). The request may have been sent, so it is not repeated. Use a client "
        "for each event loop, or httpx's own transport, or pass a model name"
    )
    base_url: str
    transport: str
    reason: str
