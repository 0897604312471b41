"""E50 to E59: the protocol, commands and retrieval."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.errors.root import KantanAgentsError


class InvalidProtocolValueError(KantanAgentsError):
    """A value of the protocol lacks what its type needs, or holds what it cannot.

    Attributes:
        value: What it was to be: ``"ContentSegment"``, ...
        problems: Every mistake; each begins with the path of the field it is about.
    """

    code = "E50"
    template = "Not a valid {value}: {listed}"
    value: str
    problems: Sequence[str]

    def __init__(self, *, value: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(value=value, problems=tuple(problems), listed=listed or "; ".join(problems))


class AgentPainException(KantanAgentsError):  # noqa: N818 - the protocol's name
    """A provider has answered with what cannot be understood, and nothing can be made of it (spec 3, 7).

    Attributes:
        provider: Name of the provider.
        reason: What is wrong with the answer.
    """

    code = "E51"
    template = "Provider {provider} cannot be understood: {reason}"
    provider: str
    reason: str


class UntranslatableError(KantanAgentsError):
    """A value cannot be carried by a format without a loss.

    Attributes:
        format: Name of the format: ``"OpenAI chat completions"``, ...
        problems: Everything it cannot carry; each begins with its path.
    """

    code = "E52"
    template = "{format} cannot carry this: {listed}"
    format: str
    problems: Sequence[str]

    def __init__(self, *, format: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(format=format, problems=tuple(problems), listed=listed or "; ".join(problems))


class ProviderRequestError(KantanAgentsError):
    """A provider's API refused a request, or could not be reached.

    Attributes:
        provider: Name of the provider.
        status: The HTTP status; None if there was no answer.
        reason: What the API said, or what went wrong on the way.
        retry_after: Seconds after which the API wants to be asked again; None if it does not say.
    """

    code = "E53"
    template = "Provider {provider} has not answered: {reason}"
    provider: str
    status: int | None
    reason: str
    retry_after: float | None

    def __init__(
        self, *, provider: str, status: int | None, reason: str, retry_after: float | None = None
    ) -> None:
        super().__init__(provider=provider, status=status, reason=reason, retry_after=retry_after)


class UnknownCommandError(KantanAgentsError):
    """A text begins like a command, and there is no such command.

    Attributes:
        name: The name that was typed, without the prefix, cut where it is long.
        nearest: Names that are most like it, of commands this user may run.
        prefix: What commands begin with.
    """

    code = "E54"
    template = (
        "Unknown command {prefix}{name}.{hint} {prefix}help lists the commands; "
        "a text that begins with {prefix} is written with {prefix}{prefix}"
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
    """What was typed behind a command is not what it takes.

    Attributes:
        command: The command, with its prefix.
        problems: Every mistake; each begins with the name of its parameter, where it is about one.
        usage: How the command is written.
    """

    code = "E55"
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
    """There is such a tool, and it cannot be run by a person.

    Attributes:
        command: The command, with its prefix.
        reason: Why it cannot be run.
    """

    code = "E56"
    template = "Cannot run {command}: {reason}"
    command: str
    reason: str


class RetrievalError(KantanAgentsError):
    """The tools that fit a text cannot be found; the model is shown all of them instead (spec 3, 6).

    Attributes:
        retriever: What was asked.
        reason: What went wrong.
    """

    code = "E57"
    template = "{retriever} finds no tools: {reason}"
    retriever: str
    reason: str


class UnknownRetrievedToolError(KantanAgentsError):
    """``ToolRetrieval(always=...)`` names tools that the agent has not.

    Attributes:
        problems: Every such name, with the nearest names there are.
    """

    code = "E58"
    template = "ToolRetrieval(always=...) names what is no tool of this agent: {listed}"
    problems: Sequence[str]

    def __init__(self, *, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(problems=tuple(problems), listed=listed or "; ".join(problems))


class HostedToolError(KantanAgentsError):
    """An agent has tools that OpenAI runs, or the SDK itself, and a model that is a provider of another kind.

    Attributes:
        provider: Name of the provider.
        tools: Names of the tools.
    """

    code = "E59"
    template = (
        "Provider {provider} can be offered function tools and hand-offs only; it has no use for: {listed}"
    )
    provider: str
    tools: Sequence[str]

    def __init__(self, *, provider: str, tools: Sequence[str], listed: str | None = None) -> None:
        super().__init__(provider=provider, tools=tuple(tools), listed=listed or ", ".join(tools))
