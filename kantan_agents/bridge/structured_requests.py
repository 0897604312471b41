"""Requests for structured output: one form after another is sent until the provider accepts one."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Any, NamedTuple, cast

import attrs
from agents import Model, ModelResponse
from openai import APIStatusError

from kantan_agents.errors import UntranslatableError
from kantan_agents.models import Origin, origin_of
from kantan_agents.structured.requests.agent_output import AgentOutput
from kantan_agents.structured.requests.encoding import Encoded, encoded
from kantan_agents.structured.requests.failure import unfit_output
from kantan_agents.structured.requests.families import Family, family_of
from kantan_agents.structured.requests.fetch import Fetch, known_forms
from kantan_agents.structured.requests.final_tool import final_calls_as_messages, without_final_calls
from kantan_agents.structured.requests.forms import Form
from kantan_agents.structured.requests.memory import FORMS, Target
from kantan_agents.structured.requests.request import Request

_STATUSES = frozenset({400, 404, 422, 500, 501})
_ABOUT_FORM = re.compile(
    r"response_?format|json|schema|mime|tool|function|grammar|strict|structured|output_?format|text\.format",
    re.IGNORECASE,
)
_ABOUT_SIZE = re.compile(
    r"context.{0,20}(length|window|size)|too (long|large|many)|maximum .{0,40}tokens|reduce the length|quota",
    re.IGNORECASE,
)
_ABOUT_CHOICE = re.compile(r"choice|required", re.IGNORECASE)
_VAGUE = re.compile(
    r"\W*(error code: \d+\W*)?(invalid|bad|unprocessable)[ _](request|entity|argument)s?\W*", re.IGNORECASE
)
_CONVERSATION = ("messages", "input[")
_SHOWN = 500

REFUSALS = (APIStatusError, UntranslatableError)


@lru_cache(maxsize=1024)
def _target(origin: Origin, schema: str, has_tools: bool) -> tuple[Target, Family]:
    target = Target(origin.base_url, origin.model, schema, has_tools)
    return target, family_of(origin.provider, origin.base_url)


class FormChoice(NamedTuple):
    """The request forms to try for one model, best first, as known when the request began.

    Attributes:
        target: The model, the schema, and whether there are tools.
        forms: The forms.
        is_chat: Whether requests go to the chat completions API.
    """

    target: Target
    forms: tuple[Form, ...]
    is_chat: bool

    @property
    def is_native(self) -> bool:
        """Whether the first form is the SDK's own request, unchanged."""
        return self.forms[0].mode == "native"


def choose_forms(model: Model, schema: AgentOutput, *, has_tools: bool) -> FormChoice:
    """Return the forms for a request whose conversation is not stored by the provider."""
    origin = origin_of(model)
    target, family = _target(origin, schema.key, has_tools)
    known = known_forms(family, schema.delivery.mode, has_tools)
    return FormChoice(target, FORMS.in_order(target, known), origin.is_chat)


@attrs.frozen
class NativeAttempt:
    """The outcome of a request in the native form, sent before a fetch was set up.

    Attributes:
        choice: The forms at the time of the request; the native form was the first.
        outcome: The response, or the provider's error.
    """

    choice: FormChoice
    outcome: ModelResponse | APIStatusError | UntranslatableError


class _Forms:
    """The forms left to try for one request."""

    def __init__(
        self, model: Model, request: Request, fetch: Fetch, choice: FormChoice | None = None
    ) -> None:
        if choice is not None:
            # In a conversation stored by the provider, the final tool's call would never get a result.
            forms = choice.forms
            if request.is_kept:
                forms = tuple(form for form in forms if form.mode != "tool")
            self._target, self._forms, self._is_chat = choice.target, forms, choice.is_chat
        else:
            origin = origin_of(model)
            target, family = _target(origin, fetch.schema.key, bool(request.tools or request.handoffs))
            self._target, self._is_chat = target, origin.is_chat
            self._forms = fetch.forms(target, family, is_kept=request.is_kept)
        self._request = request
        self._fetch = fetch
        self._errors: list[APIStatusError | UntranslatableError] = []

    def next(self) -> Encoded:
        """Return the request in the next form.

        Raises:
            StructuredOutputError: E40, the provider has refused every form.
            APIStatusError: The provider has refused every form with the same message, so the form is not
                the cause.
            UntranslatableError: E52, for the same reason.
        """
        if not self._forms:
            if len(self._errors) > 1 and len({_provider_message(error) for error in self._errors}) == 1:
                raise self._errors[0]
            raise unfit_output(self._fetch.schema.name(), self._fetch.attempts) from self._errors[-1]
        form, *left = self._forms
        self._forms = tuple(left)
        self._fetch.sent(self._target, form, self._forms)
        return encoded(self._request, self._fetch.schema, form, is_chat=self._is_chat)

    def pass_over(self, error: APIStatusError | UntranslatableError) -> None:
        """Record that the provider refused a form.

        Raises:
            APIStatusError, UntranslatableError: ``error`` itself, if it is not about the form.
        """
        if isinstance(error, UntranslatableError):
            self._pass_over_untranslatable(error)
            return
        message = _provider_message(error)
        about_form = _ABOUT_FORM.search(message) or _VAGUE.fullmatch(message)
        if error.status_code not in _STATUSES or _ABOUT_SIZE.search(message) or not about_form:
            raise error
        self._errors.append(error)
        self._fetch.refused(f"HTTP {error.status_code}: {message[:_SHOWN]}")
        if self._fetch.mode == "tool" and not _ABOUT_CHOICE.search(message):
            self._forms = tuple(form for form in self._forms if form.mode != "tool")

    def _pass_over_untranslatable(self, error: UntranslatableError) -> None:
        # The conversation is the same in every form, the schema is not.
        if any(problem.startswith(_CONVERSATION) for problem in error.problems):
            raise error
        self._errors.append(error)
        self._fetch.refused(str(error)[:_SHOWN])


def _provider_message(error: APIStatusError | UntranslatableError) -> str:
    """Return the provider's own message, which the client's error message may not contain."""
    if isinstance(error, UntranslatableError):
        return str(error)
    body = error.body[0] if isinstance(error.body, list) and error.body else error.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    message = inner.get("message") if isinstance(inner, dict) else inner
    return message if isinstance(message, str) and message else error.message


async def request_output(
    model: Model,
    request: Request,
    fetch: Fetch,
    send: Callable[[Request], Awaitable[ModelResponse]] | None = None,
    *,
    attempt: NativeAttempt | None = None,
) -> ModelResponse:
    """Request a structured output, form by form; return it as a message whatever the form.

    Args:
        model: The model.
        request: The SDK's request.
        fetch: The attempts so far.
        send: Sends a request; None calls the model directly.
        attempt: The outcome of the native form, if it has been tried already.

    Raises:
        StructuredOutputError: E40, the provider has refused every form.
    """
    forms = _Forms(model, request, fetch, attempt.choice if attempt is not None else None)
    if attempt is not None:
        forms.next()
        if not isinstance(attempt.outcome, REFUSALS):
            return attempt.outcome
        forms.pass_over(attempt.outcome)
    while True:
        prepared = forms.next()
        try:
            answer = await (prepared.request.answer(model) if send is None else send(prepared.request))
        except REFUSALS as error:
            forms.pass_over(error)
            continue
        return answer if prepared.final_tool is None else without_final_calls(answer, prepared.final_tool)


async def stream_output(
    model: Model,
    request: Request,
    fetch: Fetch,
    send: Callable[[Request, str | None], AsyncGenerator[Any, None]],
) -> AsyncGenerator[Any, None]:
    """Request a structured output as ``request_output`` does, and yield the stream events.

    Args:
        model: The model.
        request: The SDK's request.
        fetch: The attempts so far.
        send: Sends a request and streams the answer. Its second argument is the name of the final tool,
            whose call is turned into a message; None without one.

    Raises:
        StructuredOutputError: E40, the provider has refused every form.
    """
    forms = _Forms(model, request, fetch)
    while True:
        prepared = forms.next()
        has_begun = False
        try:
            async with aclosing(send(prepared.request, prepared.final_tool)) as events:
                async for event in events:
                    # "response.created" is not yet part of an answer: the provider may still refuse.
                    has_begun = has_begun or event.type != "response.created"
                    yield event
        except REFUSALS as error:
            if has_begun:
                raise
            forms.pass_over(error)
        else:
            return


async def request_answer(model: Model, request: Request, fetch: Fetch | None) -> ModelResponse:
    """Call a model directly; ``fetch`` holds the attempts so far if the request is for structured output."""
    if fetch is None:
        answer: ModelResponse = await request.answer(model)
        return answer
    return await request_output(model, request, fetch)


def stream_answer(model: Model, request: Request, fetch: Fetch | None) -> AsyncGenerator[Any, None]:
    """Call a model directly as ``request_answer`` does, and stream the answer."""
    if fetch is None:
        return closable(request.stream(model))
    return stream_output(
        model, request, fetch, lambda each, final_tool: with_final_tool(each.stream(model), final_tool)
    )


def with_final_tool(events: Any, final_tool: str | None) -> AsyncGenerator[Any, None]:
    """Return a model's stream, with calls of the final tool, if there is one, turned into messages."""
    return closable(events) if final_tool is None else final_calls_as_messages(closable(events), final_tool)


def closable(events: Any) -> AsyncGenerator[Any, None]:
    """Return a model's stream as an async generator, so that it can be closed."""
    return cast("AsyncGenerator[Any, None]", events) if hasattr(events, "aclose") else _as_generator(events)


async def _as_generator(events: Any) -> AsyncGenerator[Any, None]:
    async for event in events:
        yield event
