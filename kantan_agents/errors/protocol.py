"""E50 to E59: the protocol, commands and retrieval."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.errors.root import KantanAgentsError


class InvalidProtocolValueError(KantanAgentsError):
    """A protocol value lacks a required field or has an invalid one.

    Fix: Correct each of ``error.problems``. If a model wrote the value, return ``unreadable(...)``.

    Attributes:
        value: The type of the value: ``"ContentSegment"``, ...
        problems: Every mistake; each starts with the path of its field.
    """

    code = "E50"
    template = "Not a valid {value}: {listed}"
    value: str
    problems: Sequence[str]

    def __init__(self, *, value: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(value=value, problems=tuple(problems), listed=listed or "; ".join(problems))


class AgentPainException(KantanAgentsError):  # noqa: N818 - the protocol's name
    """A provider returned an invalid answer, or cannot read the reply of its model (spec protocol 7).

    Fix: Correct the provider. With ``on_unreadable="text"``, such a reply becomes the answer.

    Attributes:
        provider: Name of the provider.
        reason: What is wrong with the answer.
    """

    code = "E51"
    template = "Invalid answer from provider {provider}: {reason}"
    provider: str
    reason: str


class UntranslatableError(KantanAgentsError):
    """A format cannot express a part of a conversation, a tool or an answer without loss.

    Fix: Omit each of ``error.problems``, or pass it in another form: the data of a file instead of its id,
    for example.

    Attributes:
        format: Name of the format: ``"OpenAI chat completions"``, ...
        problems: Everything the format cannot express; each starts with its path.
    """

    code = "E52"
    template = "{format} cannot express: {listed}"
    format: str
    problems: Sequence[str]

    def __init__(self, *, format: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(format=format, problems=tuple(problems), listed=listed or "; ".join(problems))


class ProviderRequestError(KantanAgentsError):
    """An API rejected a request, could not be reached, lost the connection, or blocked the answer.

    Fix: For temporary failures, use ``Retry``; ``retry_after`` is the number of seconds to wait. Otherwise,
    see ``reason``.

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
    """The input looks like a slash command, but no command has this name.

    Fix: Correct the name, or start the input with ``//``.

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
    """The arguments of a slash command do not match its parameters.

    Fix: Write the command as ``error.usage`` shows.

    Attributes:
        command: The command, with its prefix.
        problems: Every mistake; each starts with its parameter, if it has one.
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
    """The tool exists, but cannot run as a slash command.

    Fix: Ask the model to use the tool. A middleware may change only the arguments of a command.

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
    """A retriever of ``ToolRetrieval`` raised, took too long or returned an invalid value (spec protocol 6).

    The run continues with all tools. The logger ``kantan_agents.retrieval`` has the error, once for each
    reason.

    Fix: A broken index is rebuilt after 30 seconds.

    Attributes:
        retriever: Name of the retriever.
        reason: Type and message of the error.
    """

    code = "E57"
    template = "{retriever} failed: {reason}"
    retriever: str
    reason: str


class UnknownRetrievedToolError(KantanAgentsError):
    """``ToolRetrieval(always=...)`` names tools that the agent lacks, or that are not plain function tools.

    Fix: Correct the names; ``problems`` has the closest ones. Tools that are not plain function tools are
    always shown.

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

    Fix: Remove them, or replace them with function tools.

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
