"""``ResponsesModel``: the SDK's model, with cut-off answers.

The SDK raises an error for them: in streams, and since 0.21 always.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from agents import ModelResponse, OpenAIResponsesModel
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseCompletedEvent

from kantan_agents.models.finish_reasons import mark_cut_off, note_end, with_end

_SETTINGS = 2
"""Index of the model settings in the arguments of ``_fetch_response``."""


class ResponsesModel(OpenAIResponsesModel):
    """The SDK's Responses API model, which returns and marks cut-off answers.

    It has the names of the SDK's class, as `ChatModel`. The websocket model gets this for streams only.
    """

    __module__ = OpenAIResponsesModel.__module__
    __qualname__ = OpenAIResponsesModel.__qualname__

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Call the model."""
        return await with_end(super().get_response(*args, **kwargs))

    # Private: the SDK checks answers before any later hook.
    def _get_client(self) -> AsyncOpenAI:
        return cast("AsyncOpenAI", _Client(super()._get_client()))

    async def _fetch_response(self, *args: Any, **kwargs: Any) -> Any:
        answer: Any = await super()._fetch_response(*args, **kwargs)
        if isinstance(answer, Response):
            return answer
        most = getattr(args[_SETTINGS], "max_tokens", None) if len(args) > _SETTINGS else None
        return _Stream(answer, most)


class _Client:
    """A client whose cut-off answers count as complete."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return _Responses(found) if name == "responses" else found


class _Responses:
    def __init__(self, responses: Any) -> None:
        self._responses = responses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._responses, name)

    async def create(self, **options: Any) -> Any:
        answer = await self._responses.create(**options)
        if isinstance(answer, Response):
            _complete(answer, options.get("max_output_tokens"))
        return answer


class _Stream:
    """A stream whose cut-off end counts as an answer."""

    def __init__(self, stream: Any, most: object) -> None:
        self._stream = stream
        self._most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._stream:
            is_cut = getattr(event, "type", None) == "response.incomplete"
            if is_cut and _complete(event.response, self._most):
                yield ResponseCompletedEvent.model_construct(
                    type="response.completed", response=event.response, sequence_number=event.sequence_number
                )
            else:
                yield event


def _complete(response: Response, most: object) -> bool:
    if response.status != "incomplete":
        return False
    said = getattr(response.incomplete_details, "reason", response.status)
    reason = note_end(said, response.model, most)
    if reason is None:
        return False
    mark_cut_off(response, reason)
    response.status = "completed"
    return True
