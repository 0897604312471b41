"""A judge's reply, even a rejected one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import attrs
from agents import ItemHelpers, MaxTurnsExceeded, ModelBehaviorError, ModelResponse
from agents.exceptions import ModelRefusalError

from kantan_agents.agent.bridge.model_answers import text_of, usage_of_call
from kantan_agents.agent.own_calls import AnswerLimit
from kantan_agents.core.interception import Middleware, ModelCall, ModelNext
from kantan_agents.errors import AnswerCutOffError, code_of
from kantan_agents.models.structured import json_data
from kantan_agents.models.structured.parsing.reasoning import reply_in
from kantan_agents.models.structured.requests.forms import Mode

_UNREADABLE = "E40"


@attrs.define
class Calls:
    """The model calls of one stage.

    ``response`` is the last one; the SDK's errors do not contain it.
    """

    run: Any = None
    response: ModelResponse | None = None
    model: str | None = None
    mode: Mode | None = None
    usage: dict[str, int] | None = None

    def belong_to(self, call: ModelCall) -> bool:
        """Return whether a call is the stage's own."""
        self.run = self.run or call.run
        return self.run is call.run


# The SDK's result has no reference to its run.
_calls: ContextVar[Calls | None] = ContextVar("kantan_agents_judge_calls", default=None)


@contextmanager
def recorded_calls() -> Iterator[Calls]:
    """Record the model calls of a stage."""
    calls = Calls()
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


@attrs.frozen
class JudgeReply:
    """A judge's reply; a reply with a ``problem`` must not be read."""

    text: str | None
    output: Any = None
    all_texts: str | None = None
    calls: Calls = attrs.field(factory=Calls)
    problem: str | None = None


class ReplyRecorder(Middleware):
    """Records the response that counts, as the outermost middleware."""

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Call the model and record its response."""
        response = await call_next(call)
        calls = _calls.get()
        if calls is not None and calls.belong_to(call):
            calls.response = response
        return response


class ModelRecorder(AnswerLimit):
    """Limits the answer and records it, as the innermost middleware."""

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Call the model and record the call."""
        return await super().model_call(call, partial(_recorded, call_next))


async def _recorded(call_next: ModelNext, call: ModelCall) -> ModelResponse:
    calls = _calls.get()
    if calls is None or not calls.belong_to(call):
        return await call_next(call)
    calls.model = _name_of(call.model)
    try:
        response = await call_next(call)
    finally:
        calls.mode = getattr(call._structured, "mode", None)
    total, numbers = calls.usage or {}, usage_of_call(response.usage)
    calls.usage = {name: total.get(name, 0) + number for name, number in numbers.items()}
    calls.response = response
    return response


def _name_of(model: Any) -> str | None:
    if isinstance(model, str):
        return model
    names = (getattr(model, name, None) for name in ("name", "model"))
    return next((name for name in names if isinstance(name, str)), None)


def reply_of(result: Any, calls: Calls) -> JudgeReply:
    """Return the reply in a result, perhaps a plain value from a middleware."""
    output = getattr(result, "final_output", result)
    text = ItemHelpers.text_message_outputs(getattr(result, "new_items", None) or [])
    if not text and output is not None:
        text = output if isinstance(output, str) else json.dumps(json_data(output), ensure_ascii=False)
    return JudgeReply(text or None, output, calls=calls)


def unusable_reply(error: Exception, calls: Calls) -> JudgeReply | None:
    """Return the reply that the SDK rejected; None for other errors, which the next stage would have too."""
    if isinstance(error, AnswerCutOffError):
        text = None if calls.response is None else text_of(calls.response)
        return JudgeReply(text or None, calls=calls, problem=f"the reply was cut off at {error.limit}")
    if isinstance(error, (ModelBehaviorError, ModelRefusalError, MaxTurnsExceeded)):
        pass
    elif code_of(error) != _UNREADABLE:
        return None
    text = getattr(error, "text", None)
    if not isinstance(text, str):
        text = "" if calls.response is None else text_of(calls.response)
    attempts = [getattr(attempt, "text", None) for attempt in getattr(error, "attempts", ())]
    all_texts = "\n".join(reply_in(one) for one in attempts if isinstance(one, str)) or None
    return JudgeReply(text or None, all_texts=all_texts, calls=calls)
