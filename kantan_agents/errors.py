"""Every error this library raises: one root, one class per code, the message of the specification.

The codes E1 to E19 and their texts are the contract (spec, error table); the other ranges are
described in ``docs/errors.md``. Data stands on the exception as attributes, so that a program never
has to parse a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

PREFIX = "[kantan-agents]"


class KantanAgentsError(ValueError):
    """Root of all errors of kantan_agents.

    Catch it to catch any of them; compare ``code`` to tell them apart without importing the class.

    Attributes:
        code: The code as it stands in the message and in ``docs/errors.md``, such as ``"E5"``.
        data: The values the message was made from; each is also an attribute of its own.
    """

    code: ClassVar[str]
    template: ClassVar[str]

    def __init__(self, **data: Any) -> None:
        self.data = data
        for name, value in data.items():
            setattr(self, name, value)
        super().__init__(f"{PREFIX}[{self.code}] {self.template.format(**data)}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by their positional arguments; ours are made from keywords.
        return (_rebuild, (type(self), self.data))


def code_of(error: BaseException) -> str | None:
    """Return the E-code of an error, None if it is not one of ours; others may have codes of their own."""
    return error.code if isinstance(error, KantanAgentsError) else None


def _rebuild(cls: type[KantanAgentsError], data: dict[str, Any]) -> KantanAgentsError:
    return cls(**data)


class InstructionsRequiredError(KantanAgentsError):
    """An Agent was made without instructions (spec 7.1)."""

    code = "E1"
    template = "instructions is required"


class EmptyPromptTextError(KantanAgentsError):
    """``Prompt.text`` is empty (spec 7.2)."""

    code = "E2"
    template = "Prompt.text must not be empty"


class EmptyPromptNameError(KantanAgentsError):
    """``Prompt.name`` or ``Prompt.version`` is empty (spec 7.3)."""

    code = "E3"
    template = "Prompt.name and Prompt.version must not be empty"


class ToolNameRequiredError(KantanAgentsError):
    """A tool has no name the model could call it by.

    Attributes:
        tool: The object that was given as a tool.
    """

    code = "E4"
    template = "Tool must define name"
    tool: Any


class ContextTypeError(KantanAgentsError):
    """The context of a run is not a dict.

    Attributes:
        got: Name of the type that was given.
    """

    code = "E5"
    template = "Context must be a dict"
    got: str


class HistoryTypeError(KantanAgentsError):
    """``context["history"]`` is not a list.

    Attributes:
        got: Name of the type that was found.
    """

    code = "E6"
    template = "Context history must be a list"
    got: str


class ToolProviderInterfaceError(KantanAgentsError):
    """A tool provider lacks ``list_tools`` or ``get_tool_rules`` (spec 9.4).

    Attributes:
        provider: Name of its entry point.
        distribution: Name of the distribution that declares it.
    """

    code = "E7"
    template = "Tool provider must implement list_tools and get_tool_rules"
    provider: str
    distribution: str

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        # The message is the specification's to the letter; Python 3.11 shows this below it.
        self.__notes__ = [f"The entry point is {self.provider!r} of {self.distribution}."]


class ToolNotAllowedError(KantanAgentsError):
    """The rules in force do not allow this tool, or not this call of it.

    Attributes:
        tool_name: Name of the tool that was called.
    """

    code = "E8"
    template = "Tool is not allowed: {tool_name}"
    tool_name: str


class UnknownToolRulesModeError(KantanAgentsError):
    """Something was given as a ``ToolRulesMode`` and is none.

    Attributes:
        mode: What was given.
    """

    code = "E9"
    template = "Unknown ToolRulesMode: {mode}"
    mode: Any


class ToolInputError(KantanAgentsError):
    """The arguments of a tool under parameter rules are no JSON object.

    Duplicate keys, numbers that are not finite and texts that are no Unicode count as none: what they
    mean depends on who reads them.

    Attributes:
        tool_name: Name of the tool.
        reason: What is wrong with the arguments.
    """

    code = "E10"
    template = "Tool input must be a JSON object"
    tool_name: str
    reason: str


class ToolParameterError(KantanAgentsError):
    """An argument of a tool breaks a parameter rule; each keyword has its own subclass (spec 8.3).

    Attributes:
        tool_name: Name of the tool.
        param_name: The parameter as the rule names it, such as ``"filter.limit"``.
        limit: What the keyword asks for.
        keyword: The keyword of JSON Schema.
    """

    tool_name: str
    param_name: str
    limit: Any
    keyword: ClassVar[str]


class ToolParameterTypeError(ToolParameterError):
    """An argument has another JSON type than its rule, or the tool itself, asks for."""

    code = "E11"
    keyword = "type"
    template = "Tool parameter type mismatch: {tool_name}.{param_name}"


class ToolParameterEnumError(ToolParameterError):
    """An argument is none of the values its rule lists."""

    code = "E12"
    keyword = "enum"
    template = "Tool parameter enum mismatch: {tool_name}.{param_name}"


class ToolParameterMinLengthError(ToolParameterError):
    """An argument has fewer characters than its rule asks for."""

    code = "E13"
    keyword = "minLength"
    template = "Tool parameter minLength mismatch: {tool_name}.{param_name}"


class ToolParameterMaxLengthError(ToolParameterError):
    """An argument has more characters than its rule allows."""

    code = "E14"
    keyword = "maxLength"
    template = "Tool parameter maxLength mismatch: {tool_name}.{param_name}"


class ToolParameterPatternError(ToolParameterError):
    """The pattern of its rule is nowhere to be found in an argument."""

    code = "E15"
    keyword = "pattern"
    template = "Tool parameter pattern mismatch: {tool_name}.{param_name}"


class ToolParameterMinimumError(ToolParameterError):
    """An argument is less than its rule allows."""

    code = "E16"
    keyword = "minimum"
    template = "Tool parameter minimum mismatch: {tool_name}.{param_name}"


class ToolParameterMaximumError(ToolParameterError):
    """An argument is more than its rule allows."""

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
"""The keywords of parameter rules, and the error each raises."""


class ToolRulesTypeError(KantanAgentsError):
    """``context["tool_rules"]`` is not a dict (spec 7.4).

    Attributes:
        got: Name of the type that was found.
    """

    code = "E18"
    template = "Tool rules must be a dict"
    got: str


class ModelNotFoundError(KantanAgentsError):
    """kantan-llm cannot resolve the model name; its own error is the ``__cause__``.

    Attributes:
        model: The name as it was given.
    """

    code = "E19"
    template = "Model not found: {model}"
    model: str


class InvalidToolRulesError(KantanAgentsError):
    """A rule set has mistakes; all of them are listed.

    Attributes:
        problems: One sentence per mistake, each beginning with its path.
    """

    code = "E20"
    template = "Invalid tool rules: {listed}"
    problems: tuple[str, ...]

    def __init__(self, *, problems: Sequence[str], **_listed: Any) -> None:
        super().__init__(problems=tuple(problems), listed="; ".join(problems))


class UnknownToolError(KantanAgentsError):
    """A model called a tool that its agent does not have.

    Attributes:
        tool_name: The name it used.
    """

    code = "E21"
    template = "There is no tool with this name: {tool_name}"
    tool_name: str


class ToolProviderFailedError(KantanAgentsError):
    """A tool provider cannot be imported, or its methods fail; its own error is the ``__cause__``.

    Attributes:
        provider: Name of its entry point.
        distribution: Name of the distribution that declares it.
        reason: Type and message of what it raised.
    """

    code = "E22"
    template = "Tool provider {provider} of {distribution} failed: {reason}"
    provider: str
    distribution: str
    reason: str


class DuplicateToolError(KantanAgentsError):
    """Two tool providers have a tool of the same name.

    Attributes:
        tool_name: The name.
        first: Entry point of the one provider.
        second: Entry point of the other.
    """

    code = "E23"
    template = (
        "Tool {tool_name} comes from two providers, {first} and {second}; choose with tool_providers=[...]"
    )
    tool_name: str
    first: str
    second: str


class UnknownToolProviderError(KantanAgentsError):
    """``tool_providers`` names a provider that is not installed.

    Attributes:
        provider: The name.
        installed: Names of those that are.
    """

    code = "E24"
    template = "Unknown tool provider: {provider} (installed: {installed})"
    provider: str
    installed: str


class JudgementError(KantanAgentsError):
    """No stage of a judgement brought a valid answer, so nobody knows which rule is met.

    Attributes:
        attempts: The stages that were tried, in order: ``StageAttempt`` objects with ``stage``,
            ``instruction``, ``reply`` and ``problem``.
    """

    code = "E44"
    template = "No stage of the judgement decided: {listed}"
    attempts: tuple[Any, ...]

    def __init__(self, *, attempts: Sequence[Any], **_listed: Any) -> None:
        listed = "; ".join(f"{attempt.stage}: {attempt.problem}" for attempt in attempts)
        super().__init__(attempts=tuple(attempts), listed=listed)


class InvalidJudgingRulesError(KantanAgentsError):
    """The rules of a ``StatusJudge`` have mistakes; all of them are listed.

    Attributes:
        problems: One sentence per mistake, each beginning with its place.
    """

    code = "E45"
    template = "Invalid judging rules: {listed}"
    problems: tuple[str, ...]

    def __init__(self, *, problems: Sequence[str], **_listed: Any) -> None:
        super().__init__(problems=tuple(problems), listed="; ".join(problems))


class OutputSchemaError(KantanAgentsError):
    """An output type cannot be expressed as a JSON schema, or is none that is valid.

    Attributes:
        output_type: The type.
        reason: What is wrong with it, and where.
    """

    code = "E41"
    template = "{output_type} cannot be an output type: {reason}"
    output_type: str
    reason: str


class StructuredOutputError(KantanAgentsError):
    """A model has come to no output that fits the output type, whatever was tried.

    It is a ``ModelBehaviorError`` of the SDK as well.

    Attributes:
        output: Name of the output type.
        text: The last reply, as the model wrote it; None if there was none.
        attempts: The ``OutputAttempt`` of each try, in order.
        count: How many attempts there were.
        tried: The attempts in words.
    """

    code = "E40"
    template = "No output that fits {output} after {count} attempt(s): {tried}"
    output: str
    text: str | None
    attempts: tuple[Any, ...]
    count: int
    tried: str


class TraceDatabaseError(KantanAgentsError):
    """A trace database cannot be opened, read or changed.

    Attributes:
        path: The file.
        reason: Why it cannot be used.
    """

    code = "E60"
    template = "Trace database cannot be used: {path}: {reason}"
    path: str
    reason: str


class TraceNotFoundError(KantanAgentsError):
    """The database has no such trace, or more than one whose id begins so.

    Attributes:
        trace_id: What was asked for.
        path: The file.
        reason: What was found instead.
    """

    code = "E61"
    template = "No such trace: {trace_id} in {path}: {reason}"
    trace_id: str
    path: str
    reason: str


class TracesNotWrittenError(KantanAgentsError):
    """Spans cannot be written now; logged, never raised. The run goes on, the spans wait.

    Attributes:
        path: The file.
        reason: What SQLite or the system said.
        queued: How many spans wait.
    """

    code = "E62"
    template = "Traces cannot be written: {path}: {reason} ({queued} spans wait)"
    path: str
    reason: str
    queued: int


class SpansDroppedError(KantanAgentsError):
    """The queue of a recorder is full and loses its oldest spans; logged, never raised.

    Attributes:
        path: The file.
        limit: How much the queue holds.
    """

    code = "E63"
    template = "Oldest spans dropped, the queue is full: {path} (it holds {limit})"
    path: str
    limit: str


class RedactionError(KantanAgentsError):
    """A ``redact`` function failed, so a span is recorded without its content; logged, never raised.

    Attributes:
        span_id: Id of the span or the trace.
        reason: What the function raised or returned.
    """

    code = "E64"
    template = "Recorded without its content, redact failed: {span_id}: {reason}"
    span_id: str
    reason: str


class SpanNotRecordedError(KantanAgentsError):
    """One span cannot be recorded, all others can; logged, never raised.

    Attributes:
        span_id: Id of the span or the trace.
        reason: Why not.
    """

    code = "E65"
    template = "Span not recorded: {span_id}: {reason}"
    span_id: str
    reason: str


class UnknownStageError(KantanAgentsError):
    """A pipeline was asked for a stage it does not have.

    Attributes:
        stage: What was asked for.
        known: Names of the stages there are, in order.
    """

    code = "E70"
    template = "Unknown stage: {stage} (this pipeline has: {known})"
    stage: str
    known: str


class DuplicateStageError(KantanAgentsError):
    """Two stages of one pipeline have the same name.

    Attributes:
        stage: The name that stands twice.
    """

    code = "E71"
    template = 'Duplicate stage: {stage} (name one of them with ("another_name", stage))'
    stage: str


class ConcurrentCallNextError(KantanAgentsError):
    """A stage called ``call_next`` while an earlier call of it was still going on.

    Attributes:
        stage: Name of the stage.
    """

    code = "E72"
    template = (
        "Stage {stage} called call_next again before the first call had finished; "
        "await one call before making the next"
    )
    stage: str


class NotAStageError(KantanAgentsError):
    """Something in a pipeline is not ``async def stage(run, call_next)``.

    Attributes:
        value: ``repr`` of the object.
        reason: What is wrong with it.
    """

    code = "E73"
    template = "Not a stage: {value} ({reason}; a stage is `async def stage(run, call_next)`)"
    value: str
    reason: str


class CallNextNotAwaitedError(KantanAgentsError):
    """A stage called ``call_next`` and returned before it had finished.

    Attributes:
        stage: Name of the stage.
    """

    code = "E74"
    template = "Stage {stage} returned without awaiting call_next; write `await call_next(run)`"
    stage: str


class InvalidOptionError(KantanAgentsError):
    """An option of ``Agent`` or of a run has a value it cannot have.

    Attributes:
        option: Name of the option.
        reason: What it must be and what was given.
    """

    code = "E75"
    template = "Invalid option {option}: {reason}"
    option: str
    reason: str


class RendererResultError(KantanAgentsError):
    """A renderer returned something else than a str.

    Attributes:
        got: Name of the type it returned.
    """

    code = "E76"
    template = "The renderer must return a str, it returned {got}"
    got: str


class RenderError(KantanAgentsError):
    """A value of the context could not be put into the instructions; the reason is ``__cause__``.

    Attributes:
        expression: The marker as it stands in the text.
        reason: Type and message of the error the value raised.
    """

    code = "E77"
    template = "Cannot render {expression}: {reason}"
    expression: str
    reason: str


class InputTypeError(KantanAgentsError):
    """The input of a run is neither a str, nor a list of input items, nor a ``RunState``.

    Attributes:
        got: Name of the type that was given.
    """

    code = "E78"
    template = "Input must be a str, a list of input items or a RunState, not {got}"
    got: str


class FileArgumentError(KantanAgentsError):
    """A file named on the command line cannot be used.

    Attributes:
        path: The path as it was given.
        reason: Why it cannot be used.
    """

    code = "E79"
    template = "Cannot use {path}: {reason}"
    path: str
    reason: str


class MiddlewareResultError(KantanAgentsError):
    """A middleware around a model call or a tool call has returned or passed on what it must not.

    Attributes:
        middleware: Where it stands: class and method.
        reason: What is wrong.
    """

    code = "E80"
    template = "Middleware {middleware}: {reason}"
    middleware: str
    reason: str


class StreamUsageError(KantanAgentsError):
    """A streamed run was used in a way that cannot work.

    Attributes:
        reason: What was done, and what to do instead.
    """

    code = "E81"
    template = "Streamed run: {reason}"
    reason: str


class DeadlineExceededError(KantanAgentsError, TimeoutError):
    """A run was not over when its ``Deadline`` had passed; it has been cancelled.

    Attributes:
        agent: Name of the agent that was run.
        seconds: The deadline.
        model_calls: How many model calls had been answered.
        tool_calls: How many tool calls had ended.
        text: What the models had written so far, in a run that was streamed; else empty.
    """

    code = "E82"
    template = (
        "Deadline exceeded: {agent} had not finished after {seconds:g} s "
        "({model_calls} model calls and {tool_calls} tool calls done)"
    )
    agent: str
    seconds: float
    model_calls: int
    tool_calls: int
    text: str


class BudgetExceededError(KantanAgentsError):
    """A ``Budget`` leaves no room for a call that a run was about to make.

    Attributes:
        what: ``"model calls"``, ``"tool calls"``, ``"tokens"`` or ``"cost"``.
        limit: The limit.
        used: What has been used of it, and what calls that are under way have reserved.
    """

    code = "E83"
    template = "Budget exceeded: {used} of {limit} {what} used or reserved"
    what: str
    limit: float
    used: float


class RedactedContentBlockedError(KantanAgentsError):
    """``Redact(mode="block")`` has found something that must not be passed on.

    Attributes:
        rule: Name of the rule that found it; what it found is told nowhere.
        where: Where it stood.
    """

    code = "E84"
    template = "Blocked by the redaction rule {rule}: found in {where}"
    rule: str
    where: str


class ApprovalStateError(KantanAgentsError):
    """A run that waits for approvals cannot be stored, or not be resumed as it was said.

    Attributes:
        reason: What is wrong, and what to do.
    """

    code = "E85"
    template = "Approval: {reason}"
    reason: str
