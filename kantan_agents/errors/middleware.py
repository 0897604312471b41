"""E80, E82 to E84, E42, E173 to E175, E177: what middleware raises, and a result that it must not return."""

from __future__ import annotations

from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class MiddlewareResultError(KantanAgentsError):
    """A middleware around a model call or tool call returned or passed on an invalid value.

    Fix: Write ``return await call_next(call)``, or return another result.

    Attributes:
        middleware: Its class and method.
        reason: What is wrong.
    """

    code = "E80"
    template = "Middleware {middleware}: {reason}"
    middleware: str
    reason: str


class DeadlineExceededError(KantanAgentsError, TimeoutError):
    """A run exceeded its ``Deadline`` and was canceled. Also a ``TimeoutError``.

    Fix: Allow more time. The trace shows which step took it.

    Attributes:
        agent: Name of the agent.
        seconds: The deadline.
        model_calls: Number of model calls that had finished.
        tool_calls: Number of tool calls that had finished.
        text: The text that the models had written so far if the run was streamed; else empty.
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
    """A ``Budget`` does not cover the next call of a run. Calls of parallel runs in progress count.

    Fix: Raise the limit, or ``reset`` the budget when its period is over.

    Attributes:
        what: ``"model calls"``, ``"tool calls"``, ``"tokens"`` or ``"cost"``.
        limit: The limit.
        used: The amount used, plus the amount reserved by running calls.
    """

    code = "E83"
    template = "Budget exceeded: {used} of {limit} {what} used or reserved"
    what: str
    limit: float
    used: float


class UnknownUsageError(KantanAgentsError):
    """A ``Budget(on_unknown_usage="raise")`` cannot count a model call, because it has no usage.

    Fix: Remove ``include_usage=False`` from the settings. If the server never sends usage, limit
    ``max_model_calls`` or use ``on_unknown_usage="warn"``. Then ``reset`` the budget.

    Attributes:
        what: ``"tokens"`` or ``"cost"``.
        model: Name of the model.
    """

    code = "E42"
    template = (
        "Budget cannot count {what}: an answer of {model} has no usage. No call is made until the budget is "
        "reset."
    )
    what: str
    model: str


class RedactedContentBlockedError(KantanAgentsError):
    """``Redact(mode="block")`` found content that must not be passed on. The content is not reported.

    Fix: Nothing if the rule was right. Otherwise remove the rule, or use another mode.

    Attributes:
        rule: Name of the rule that matched; the match itself is never reported.
        where: The position of the match.
    """

    code = "E84"
    template = "Blocked by the redaction rule {rule}: found in {where}"
    rule: str
    where: str


class RequestTooLongError(KantanAgentsError):
    """The request is too long even after ``CompactHistory`` omitted everything it may.

    Fix: Shorten the message or the instructions, offer fewer tools, lower ``keep_turns``, or use a model with
    a larger window. With ``on_too_long="send"``, the provider decides.

    Attributes:
        model: Name of the model; None if it has no name.
        tokens: About how many tokens the request has after everything optional is omitted.
        limit: The most tokens of a request to this model.
    """

    code = "E177"
    template = (
        "Request too long: about {tokens} tokens for {model}, at most {limit}. The instructions, the tools "
        "and the newest turns cannot be shortened further"
    )
    model: str | None
    tokens: int
    limit: int


class QueueFullError(KantanAgentsError):
    """Too many calls or runs of one key wait for a ``LimitConcurrency``.

    Fix: Answer with status 503, and let the client retry later. If it happens often, raise the limit or
    ``max_waiting``.

    Attributes:
        key: The key, such as the tenant; None without one.
        what: ``"model calls"`` or ``"runs"``.
        waiting: How many of this key wait, which is the limit.
        limit: How many may be made at the same time.
    """

    code = "E173"
    template = "Queue full: {waiting} {what} of {key!r} already wait for one of {limit} places"
    key: Any
    what: str
    waiting: int
    limit: int


class QueueTimeoutError(KantanAgentsError, TimeoutError):
    """A call or a run has waited ``max_wait`` seconds for a ``LimitConcurrency``. Also a ``TimeoutError``.

    Fix: Answer with status 503, and let the client retry later. If it happens often, raise the limit or
    ``max_wait``.

    Attributes:
        key: The key, such as the tenant; None without one.
        what: ``"model calls"`` or ``"runs"``.
        seconds: How long it has waited: ``max_wait``.
        limit: How many may be made at the same time.
    """

    code = "E174"
    template = "No place after {seconds:g} s: {what} of {key!r} wait for one of {limit} places"
    key: Any
    what: str
    seconds: float
    limit: int


class RunKeyError(KantanAgentsError):
    """The context does not name the tenant of the run, or names it with an unusable value.

    The value must be a str, an int or a UUID.

    Fix: Put the tenant into the context, or pass another ``per``. With ``Cache(per=None)``, all runs share
    their answers.

    Attributes:
        middleware: Name of the middleware.
        what: Where the key should be.
        reason: What is wrong.
    """

    code = "E175"
    template = "{middleware}: {what} {reason}"
    middleware: str
    what: str
    reason: str
