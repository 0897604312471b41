"""Sends structured requests in one form after another, until the provider accepts one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Any, NamedTuple, cast

import attrs
from agents import Model, ModelResponse

from kantan_agents.errors import UntranslatableError
from kantan_agents.models.origin import ModelOrigin, origin_of
from kantan_agents.models.stream_usage import stream_with_usage
from kantan_agents.models.structured.requests.agent_output import AgentOutput
from kantan_agents.models.structured.requests.encoding import Encoded, encoded
from kantan_agents.models.structured.requests.failure import unfit_output
from kantan_agents.models.structured.requests.families import Family, family_of
from kantan_agents.models.structured.requests.fetch import Fetch, known_forms
from kantan_agents.models.structured.requests.final_tool import final_calls_as_messages, without_final_calls
from kantan_agents.models.structured.requests.forms import TEXT_FORMS, Form
from kantan_agents.models.structured.requests.memory import FORMS, FormTarget
from kantan_agents.models.structured.requests.refusals import (
    REFUSALS,
    RefusalError,
    bareness,
    cause_of,
    described,
    is_about_choice,
    message_of,
)
from kantan_agents.models.structured.requests.request import Request


@lru_cache(maxsize=1024)
def _target(origin: ModelOrigin, schema: str, has_tools: bool) -> tuple[FormTarget, Family]:
    target = FormTarget(origin.base_url, origin.model, schema, has_tools)
    return target, family_of(origin.provider, origin.base_url)


class FormChoice(NamedTuple):
    """The request forms for one model, best first; ``is_chat``: the chat completions API."""

    target: FormTarget
    forms: tuple[Form, ...]
    is_chat: bool

    @property
    def is_native(self) -> bool:
        """Whether the first form is the SDK's request."""
        return self.forms[0].mode == "native"


def choose_forms(model: Model, schema: AgentOutput, *, has_tools: bool) -> FormChoice:
    """Return the forms for a conversation that the provider does not store."""
    origin = origin_of(model)
    target, family = _target(origin, schema.key, has_tools)
    known = known_forms(family, schema.delivery.mode, has_tools)
    return FormChoice(target, FORMS.in_order(target, known), origin.is_chat)


@attrs.frozen
class NativeAttempt:
    """The response or error of a native request before a fetch."""

    choice: FormChoice
    outcome: ModelResponse | RefusalError


class _Forms:
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
        self._form = self._forms[0]
        self._errors: list[RefusalError] = []
        self._passed: list[Form] = []
        self._decides = False
        self._is_doubtful = False

    def next(self) -> Encoded:
        if not self._forms:
            raise unfit_output(self._fetch.schema.name(), self._fetch.attempts) from self._errors[-1]
        self._form, *left = self._forms
        self._forms = tuple(left)
        self._fetch.sent(self._target, self._form, self._forms)
        return encoded(self._request, self._fetch.schema, self._form, is_chat=self._is_chat)

    def pass_over(self, error: RefusalError) -> None:
        """Move on from a rejected form, or raise an error that is not about the form.

        An unclear or repeated error is decided by one more request. If that is rejected too, the form is not
        the cause, and the first error is raised.
        """
        form, cause = self._form, cause_of(error, self._form)
        if cause == "other":
            raise error
        is_repeated = message_of(error) in map(message_of, self._errors)
        self._fetch.refused(described(error))
        self._errors.append(error)
        self._passed.append(form)
        if self._decides or form in TEXT_FORMS:
            raise self._errors[0] if self._decides or is_repeated else error
        if isinstance(error, UntranslatableError):  # found without a request
            return
        if cause == "unclear" or is_repeated:
            self._decide_next()
        elif form.mode == "tool" and not is_about_choice(error):
            self._skip([left for left in self._forms if left.mode == "tool"])

    def _skip(self, forms: list[Form]) -> None:
        self._passed += forms
        self._forms = tuple(left for left in self._forms if left not in forms)

    def _decide_next(self) -> None:
        barer = [left for left in self._forms if bareness(left) > bareness(self._form)]
        if not barer:
            raise self._errors[0]
        deciding = max(barer, key=bareness)
        self._skip([left for left in self._forms if left not in (deciding, *TEXT_FORMS)])
        self._decides = True
        # One unclear error must not demote a working form for all later runs.
        self._is_doubtful = self._fetch.memory.has_worked(self._target, self._form)

    def accepted(self) -> None:
        """Remember the rejected forms: another one worked, so the form was the cause."""
        if not self._passed:
            return
        if self._is_doubtful:
            self._fetch.slipped()
        else:
            for form in self._passed:
                self._fetch.memory.refused(self._target, form)
        self._passed.clear()


async def request_output(
    model: Model,
    request: Request,
    fetch: Fetch,
    send: Callable[[Request], Awaitable[ModelResponse]] | None = None,
    *,
    attempt: NativeAttempt | None = None,
) -> ModelResponse:
    """Return a structured output as a message; E40 if the provider has rejected every form."""
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
        forms.accepted()
        return answer if prepared.final_tool is None else without_final_calls(answer, prepared.final_tool)


async def stream_output(
    model: Model,
    request: Request,
    fetch: Fetch,
    send: Callable[[Request, str | None], AsyncGenerator[Any, None]],
) -> AsyncGenerator[Any, None]:
    """Yield the events of ``request_output``.

    ``send`` gets a request and the name of the final tool, if any.
    """
    forms = _Forms(model, request, fetch)
    while True:
        prepared = forms.next()
        has_begun = False
        try:
            async with aclosing(send(prepared.request, prepared.final_tool)) as events:
                async for event in events:
                    # "response.created" is not an answer: the provider may still reject the request.
                    has_begun = has_begun or event.type != "response.created"
                    yield event
        except REFUSALS as error:
            if has_begun:
                raise
            forms.pass_over(error)
        else:
            forms.accepted()
            return


async def request_answer(model: Model, request: Request, fetch: Fetch | None) -> ModelResponse:
    """Call a model directly; ``fetch`` has the attempts of a structured output."""
    if fetch is None:
        answer: ModelResponse = await request.answer(model)
        return answer
    return await request_output(model, request, fetch)


def stream_answer(model: Model, request: Request, fetch: Fetch | None) -> AsyncGenerator[Any, None]:
    """Stream the answer of ``request_answer``."""
    if fetch is None:
        return closable(open_stream(model, request))
    return stream_output(
        model, request, fetch, lambda each, final_tool: with_final_tool(open_stream(model, each), final_tool)
    )


def open_stream(model: Model, request: Request) -> Any:
    """Return a model's stream of events, with usage if possible."""
    return stream_with_usage(
        model, request.settings, lambda settings: attrs.evolve(request, settings=settings).stream(model)
    )


def with_final_tool(events: Any, final_tool: str | None) -> AsyncGenerator[Any, None]:
    """Turn calls of the final tool into messages."""
    return closable(events) if final_tool is None else final_calls_as_messages(closable(events), final_tool)


def closable(events: Any) -> AsyncGenerator[Any, None]:
    """Return a stream as an async generator, which can be closed."""
    return cast("AsyncGenerator[Any, None]", events) if hasattr(events, "aclose") else _as_generator(events)


async def _as_generator(events: Any) -> AsyncGenerator[Any, None]:
    async for event in events:
        yield event
