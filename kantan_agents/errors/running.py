"""E70 to E89: pipeline, options, streams, middleware."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


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
