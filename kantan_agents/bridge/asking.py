"""A model asked for a structured output, in one form after another until the provider accepts one."""

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


class Choice(NamedTuple):
    """In which forms a model is asked, the best first, by what was known when it was first asked.

    Attributes:
        target: Who is asked for what.
        forms: The forms.
        is_chat: Whether it is asked over chat completions.
    """

    target: Target
    forms: tuple[Form, ...]
    is_chat: bool

    @property
    def is_native(self) -> bool:
        """Whether it is asked first just as the SDK would ask it."""
        return self.forms[0].mode == "native"


def choice_for(model: Model, schema: AgentOutput, *, has_tools: bool) -> Choice:
    """Return the forms for a new request, the conversation of which the provider does not keep."""
    origin = origin_of(model)
    target, family = _target(origin, schema.key, has_tools)
    known = known_forms(family, schema.delivery.mode, has_tools)
    return Choice(target, FORMS.in_order(target, known), origin.is_chat)


@attrs.frozen
class Said:
    """What a model has said to a request as the SDK makes it.

    Attributes:
        choice: The forms as they were when it was asked; the native one was the first.
        outcome: Its answer, or that the provider has refused.
    """

    choice: Choice
    outcome: ModelResponse | APIStatusError | UntranslatableError


class _Forms:
    """The forms in which one request may be made of one model."""

    def __init__(self, model: Model, request: Request, fetch: Fetch, choice: Choice | None = None) -> None:
        if choice is not None:
            # The final tool's call would stay without a result in a conversation that the provider keeps.
            forms = choice.forms
            kept = tuple(form for form in forms if form.mode != "tool") if request.is_kept else forms
            self._target, self._forms, self._is_chat = choice.target, kept, choice.is_chat
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
            StructuredOutputError: E40, the provider has refused all of them.
            APIStatusError: It has, and each time for the same reason: the form is not what it is about.
            UntranslatableError: E52, likewise.
        """
        if not self._forms:
            if len(self._errors) > 1 and len({_said(error) for error in self._errors}) == 1:
                raise self._errors[0]
            raise unfit_output(self._fetch.schema.name(), self._fetch.attempts) from self._errors[-1]
        form, *left = self._forms
        self._forms = tuple(left)
        self._fetch.sent(self._target, form, self._forms)
        return encoded(self._request, self._fetch.schema, form, is_chat=self._is_chat)

    def pass_over(self, error: APIStatusError | UntranslatableError) -> None:
        """Note that the provider refused a form; raise what is about something else."""
        if isinstance(error, UntranslatableError):
            self._pass_over_untranslatable(error)
            return
        said = _said(error)
        about_form = _ABOUT_FORM.search(said) or _VAGUE.fullmatch(said)
        if error.status_code not in _STATUSES or _ABOUT_SIZE.search(said) or not about_form:
            raise error
        self._errors.append(error)
        self._fetch.refused(f"HTTP {error.status_code}: {said[:_SHOWN]}")
        if self._fetch.mode == "tool" and not _ABOUT_CHOICE.search(said):
            self._forms = tuple(form for form in self._forms if form.mode != "tool")

    def _pass_over_untranslatable(self, error: UntranslatableError) -> None:
        # The conversation is the same in every form; a schema is not.
        if any(problem.startswith(_CONVERSATION) for problem in error.problems):
            raise error
        self._errors.append(error)
        self._fetch.refused(str(error)[:_SHOWN])


def _said(error: APIStatusError | UntranslatableError) -> str:
    """Return the provider's own words, which the client's message may not have."""
    if isinstance(error, UntranslatableError):
        return str(error)
    body = error.body[0] if isinstance(error.body, list) and error.body else error.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    return said if isinstance(said, str) and said else error.message


async def answer_in_form(
    model: Model,
    request: Request,
    fetch: Fetch,
    ask: Callable[[Request], Awaitable[ModelResponse]] | None = None,
    *,
    said: Said | None = None,
) -> ModelResponse:
    """Ask a model for a structured output; its answer is a message, in whatever form it came.

    Args:
        model: The model.
        request: What the SDK asks for.
        fetch: What was tried so far.
        ask: Sends a request to the model; without it the model is asked directly.
        said: What the model has said already to the request in its first form.

    Raises:
        StructuredOutputError: E40, the provider has refused every form.
    """
    forms = _Forms(model, request, fetch, said.choice if said is not None else None)
    if said is not None:
        forms.next()
        if not isinstance(said.outcome, REFUSALS):
            return said.outcome
        forms.pass_over(said.outcome)
    while True:
        way = forms.next()
        try:
            answer = await (way.request.answer(model) if ask is None else ask(way.request))
        except REFUSALS as error:
            forms.pass_over(error)
            continue
        return answer if way.final_tool is None else without_final_calls(answer, way.final_tool)


async def stream_in_form(
    model: Model,
    request: Request,
    fetch: Fetch,
    stream: Callable[[Request, str | None], AsyncGenerator[Any, None]],
) -> AsyncGenerator[Any, None]:
    """Ask a model for a structured output and yield what it streams, as ``answer_in_form`` does.

    Args:
        model: The model.
        request: What the SDK asks for.
        fetch: What was tried so far.
        stream: Sends a request; gets the name of the final tool, the call of which is to be a message.

    Raises:
        StructuredOutputError: E40, the provider has refused every form.
    """
    forms = _Forms(model, request, fetch)
    while True:
        way = forms.next()
        has_begun = False
        try:
            async with aclosing(stream(way.request, way.final_tool)) as events:
                async for event in events:
                    # That a provider is about to be asked is no part of its answer.
                    has_begun = has_begun or event.type != "response.created"
                    yield event
        except REFUSALS as error:
            if has_begun:
                raise
            forms.pass_over(error)
        else:
            return


async def answered(model: Model, request: Request, fetch: Fetch | None) -> ModelResponse:
    """Ask a model directly; with what was tried so far if it is for a structured output."""
    if fetch is None:
        answer: ModelResponse = await request.answer(model)
        return answer
    return await answer_in_form(model, request, fetch)


def streamed(model: Model, request: Request, fetch: Fetch | None) -> AsyncGenerator[Any, None]:
    """Ask a model directly and stream its answer, as ``answered`` does."""
    if fetch is None:
        return closable(request.stream(model))
    return stream_in_form(
        model, request, fetch, lambda asked, final_tool: with_final_tool(asked.stream(model), final_tool)
    )


def with_final_tool(events: Any, final_tool: str | None) -> AsyncGenerator[Any, None]:
    """Return a model's stream, the call of the final tool as a message if there is such a tool."""
    return closable(events) if final_tool is None else final_calls_as_messages(closable(events), final_tool)


def closable(events: Any) -> AsyncGenerator[Any, None]:
    """Return a model's stream as something that can be closed; only generators can be by themselves."""
    return cast("AsyncGenerator[Any, None]", events) if hasattr(events, "aclose") else _passed_on(events)


async def _passed_on(events: Any) -> AsyncGenerator[Any, None]:
    async for event in events:
        yield event
