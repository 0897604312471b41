"""E50 to E59: the protocol, commands and retrieval."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.errors.root import KantanAgentsError


class InvalidProtocolValueError(KantanAgentsError):
    """A protocol value lacks a required field or has an invalid one.

    Attributes:
        value: The type of the value: ``"ContentSegment"``, ...
        problems: Every mistake; each begins with the path of its field.
    """

    code = "E50"
    template = "Not a valid {value}: {listed}"
    value: str
    problems: Sequence[str]

    def __init__(self, *, value: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(value=value, problems=tuple(problems), listed=listed or "; ".join(problems))


class AgentPainException(KantanAgentsError):  # noqa: N818 - the protocol's name
    """A provider cannot understand the reply of its model (spec protocol 7).

    Attributes:
        provider: Name of the provider.
        reason: What is wrong with the answer.
    """

    code = "E51"
    template = "Invalid answer from provider {provider}: {reason}"
    provider: str
    reason: str


class UntranslatableError(KantanAgentsError):
    """A format cannot express a value without loss.

    Attributes:
        format: Name of the format: ``"OpenAI chat completions"``, ...
        problems: Everything the format cannot express; each begins with its path.
    """

    code = "E52"
    template = "{format} cannot express: {listed}"
    format: str
    problems: Sequence[str]

    def __init__(self, *, format: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(format=format, problems=tuple(problems), listed=listed or "; ".join(problems))


class ProviderRequestError(KantanAgentsError):
    """A provider's API rejected a request or could not be reached.

    Attributes:
        provider: Name of the provider.
        status: The HTTP status; None without a response.
        reason: The message of the API, or the connection error.
        retry_after: Seconds after which the API asks clients to retry; None if it does not say.
    """

    code = "E53"
    template = "Request to provider {provider} failed: {reason}"
    provider: str
    status: int | None
    reason: str
    retry_after: float | None

    def __init__(
        self, *, provider: str, status: int | None, reason: str, retry_after: float | None = None
    ) -> None:
        super().__init__(provider=provider, status=status, reason=reason, retry_after=retry_after)


class UnknownCommandError(KantanAgentsError):
    """A text begins like a command, but no command has this name.

    Attributes:
        name: The name as typed, without the prefix, shortened if long.
        nearest: The most similar names of commands that this user may run.
        prefix: The prefix of commands.
    """

    code = "E54"
    is_bad_input = True
    template = (
        "Unknown command {prefix}{name}.{hint} {prefix}help lists the commands; "
        "to send a text that begins with {prefix}, type {prefix}{prefix}"
    )
    name: str
    nearest: Sequence[str]
    prefix: str

    def __init__(
        self, *, name: str, nearest: Sequence[str] = (), prefix: str = "/", hint: str | None = None
    ) -> None:
        if hint is None:
            listed = " or ".join(f"{prefix}{other}" for other in nearest)
            hint = f" Did you mean {listed}?" if nearest else ""
        super().__init__(name=name, nearest=tuple(nearest), prefix=prefix, hint=hint)


class CommandSyntaxError(KantanAgentsError):
    """The arguments of a command are invalid.

    Attributes:
        command: The command, with its prefix.
        problems: Every mistake; each begins with its parameter, if it has one.
        usage: The syntax of the command.
    """

    code = "E55"
    is_bad_input = True
    template = "Cannot read {command}: {listed}. Usage: {usage}"
    command: str
    problems: Sequence[str]
    usage: str

    def __init__(
        self, *, command: str, problems: Sequence[str], usage: str, listed: str | None = None
    ) -> None:
        super().__init__(
            command=command, problems=tuple(problems), usage=usage, listed=listed or "; ".join(problems)
        )


class CommandNotRunnableError(KantanAgentsError):
    """The tool exists, but a person cannot run it as a command.

    Attributes:
        command: The command, with its prefix.
        reason: The reason.
    """

    code = "E56"
    is_bad_input = True
    template = "Cannot run {command}: {reason}"
    command: str
    reason: str


class RetrievalError(KantanAgentsError):
    """The tools that fit a text cannot be found; the model is shown all of them instead (spec protocol 6).

    Attributes:
        retriever: Name of the retriever.
        reason: Type and message of the error.
    """

    code = "E57"
    template = "{retriever} failed: {reason}"
    retriever: str
    reason: str


class UnknownRetrievedToolError(KantanAgentsError):
    """``ToolRetrieval(always=...)`` names tools that the agent does not have.

    Attributes:
        problems: Every unknown name, with the most similar known names.
    """

    code = "E58"
    template = "ToolRetrieval(always=...) names unknown tools: {listed}"
    problems: Sequence[str]

    def __init__(self, *, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(problems=tuple(problems), listed=listed or "; ".join(problems))


class HostedToolError(KantanAgentsError):
    """An agent on a custom model provider has tools that only OpenAI or the SDK can run.

    Attributes:
        provider: Name of the provider.
        tools: Names of the tools.
    """

    code = "E59"
    template = "Provider {provider} supports only function tools and hand-offs, not: {listed}"
    provider: str
    tools: Sequence[str]

    def __init__(self, *, provider: str, tools: Sequence[str], listed: str | None = None) -> None:
        super().__init__(provider=provider, tools=tuple(tools), listed=listed or ", ".join(tools))
