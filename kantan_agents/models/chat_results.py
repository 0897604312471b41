"""Images and files in tool results for chat completions, whose results are text.

The SDK omits them. Here a user message after the results has them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from agents import ModelResponse, OpenAIChatCompletionsModel

from kantan_agents.core.items import is_result
from kantan_agents.models.finish_reasons import note_choice, with_end
from kantan_agents.models.odd_replies import fit_answer, is_usual, objects_in
from kantan_agents.models.odd_streams import FittedStream
from kantan_agents.models.origin import origin_of
from kantan_agents.models.text_calls import CALLERS, reader_for

_TEXT = "input_text"
_NOT_TEXT = ("input_image", "input_file", "input_audio")
_SETTINGS = 2
"""Index of the model settings in the arguments of ``_fetch_response``."""


def results_as_text(items: Any) -> Any:
    """Return items with text results, then their media."""
    if isinstance(items, str) or not any(map(_has_media, items)):
        return items
    changed: list[Any] = []
    shown: list[dict[str, Any]] = []
    for item in items:
        if _has_media(item):
            changed.append(_as_text(item, shown))
            continue
        if shown and not is_result(item):
            changed.append({"role": "user", "content": shown})
            shown = []
        changed.append(item)
    return [*changed, {"role": "user", "content": shown}] if shown else changed


def _has_media(item: Any) -> bool:
    output = item.get("output") if is_result(item) else None
    return isinstance(output, list) and any(map(_is_media, output))


def _is_media(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _NOT_TEXT


def _as_text(item: Mapping[str, Any], shown: list[dict[str, Any]]) -> dict[str, Any]:
    output: list[Any] = []
    for part in item["output"]:
        if not _is_media(part):
            output.append(part)
            continue
        number = 1 + len(shown) // 2
        kind = part["type"].removeprefix("input_")
        output.append({"type": _TEXT, "text": f"[{kind} {number}: in the message after the results]"})
        # A model must not attribute it to the user.
        shown.append({"type": _TEXT, "text": f"[{kind} {number}, from the result of a tool]"})
        shown.append(dict(part))
    return {**item, "output": output}


class ChatModel(OpenAIChatCompletionsModel):
    """The SDK's chat completions model, with images and files of results.

    It also reads odd replies (``odd_replies.py``) and marks cut-off answers (``finish_reasons.py``).

    It has the names of the SDK's class, by which the SDK orders agents when it stores a paused run.
    """

    __module__ = OpenAIChatCompletionsModel.__module__
    __qualname__ = OpenAIChatCompletionsModel.__qualname__

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """Call the model."""
        return await with_end(
            super().get_response(system_instructions, results_as_text(input), *args, **kwargs)
        )

    def stream_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Call the model and stream its response."""
        return super().stream_response(system_instructions, results_as_text(input), *args, **kwargs)

    async def _fetch_response(self, *args: Any, **kwargs: Any) -> Any:
        # Private: the only hook before the SDK makes its items.
        answer = await super()._fetch_response(*args, **kwargs)
        new_reader = partial(reader_for, self, *args)
        most = getattr(args[_SETTINGS], "max_tokens", None) if len(args) > _SETTINGS else None
        if isinstance(answer, tuple):
            response, stream = answer
            return response, FittedStream(stream, response, new_reader, self._note_call, most)
        choices = objects_in(getattr(answer, "choices", None))
        for choice in choices:
            if getattr(getattr(choice, "message", None), "tool_calls", None):
                self._note_call()
        if not is_usual(answer):
            fit_answer(answer, new_reader)
        # Last: the span has the original answer.
        reason = note_choice(choices[0], self.model, most) if choices else None
        if reason is not None and getattr(choices[0], "message", None) is not None:
            choices[0].message.finish_reason = reason
        return answer

    def _note_call(self) -> None:
        """Note that the server parses calls, so that text is not parsed."""
        # The model's attributes are part of ``Cache`` keys.
        origin = origin_of(self)
        if origin not in CALLERS:
            CALLERS.add(origin)
