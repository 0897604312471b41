"""What is captured of one model call."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import msgspec
from agents import ModelResponse

from kantan_agents.agent.bridge.captured.collector import Collector, error_data
from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.core.interception import is_redacted, redacted_data
from kantan_agents.core.usage import usage_numbers
from kantan_agents.models.protocol.translate.openai_responses.provider_data import without_media
from kantan_agents.traces.capture.shared import shared_item


class ModelCallCapture:
    """One model call that has begun.

    Args:
        capture: The run's.
        data: What is known when it begins.
        place: Its place among the model calls of the run.

    Attributes:
        data: What is known so far.
    """

    __slots__ = ("_begun", "_capture", "_place", "data")

    def __init__(self, capture: Collector, data: dict[str, Any], place: int) -> None:
        self._capture = capture
        self._place = place
        self.data = data
        self._begun = perf_counter()

    def answered(self, answer: ModelResponse, *, reports_usage: bool = True) -> None:
        """Capture the answer, with its tokens if the provider has reported any usage."""
        self.data["seconds"] = perf_counter() - self._begun
        try:
            # Every run waits for this: one function and one loop, as each comprehension would be a call.
            requests, run = self._capture.requests, self._capture.run
            items: Any = answer.output
            encode_item: Any = _packed_item
            if is_redacted(run):
                items = redacted_data(run, [_item_data(item) for item in items])
                encode_item = encode
            packed, output = [], []
            for item in items:
                one = encode_item(item)
                packed.append(one)
                output.append(shared_item(one))
            requests.answered, requests.answered_by = packed, self._place
            requests.size += sum(map(len, packed))
            usage = answer.usage
            data: dict[str, Any] = {
                "output": output,
                "usage": usage_numbers(usage) if reports_usage else {"requests": usage.requests},
            }
            if answer.response_id:
                data["response_id"] = answer.response_id
            self.data["answer"] = data
        except Exception as error:  # noqa: BLE001 - recording must not make a run fail
            self._capture.failed("an answer", error)

    def failed(self, error: BaseException, *, has_begun: bool = False, is_superseded: bool = False) -> None:
        """Capture the error, also that of a cancellation, and whether a part of the answer was streamed."""
        if has_begun:
            self.data["broke_off"] = True
        if is_superseded:
            self.data["is_superseded"] = True
        self.data["seconds"] = perf_counter() - self._begun
        try:
            self.data["error"] = error_data(self._capture.run, error)
        except Exception as raised:  # noqa: BLE001 - recording must not make a run fail
            self._capture.failed("an error", raised)


def _item_data(item: Any) -> Any:
    dump = getattr(item, "model_dump", None)
    return without_media(item if dump is None else dump(mode="json", exclude_unset=True, warnings=False))


def _packed_item(item: Any) -> bytes:
    """Return the same as ``encode(_item_data(item))``, for most items in a tenth of the time."""
    try:
        return _encode_fields(item)
    except Exception:  # noqa: BLE001 - half a surrogate pair, provider_data, a value of another type
        return encode(_item_data(item))


def _set_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a part of an answer that are set.

    Raises:
        TypeError: It is not one of OpenAI's own types, or it has extra fields, such as provider_data.
    """
    kind = type(value)
    if kind not in _own_types:
        if not kind.__module__.startswith("openai.types."):
            raise TypeError(kind.__name__)
        _own_types.add(kind)
    if value.__pydantic_extra__:
        raise TypeError(kind.__name__)
    values: dict[str, Any] = value.__dict__
    fields = value.__pydantic_fields_set__
    if len(values) == len(fields):  # without extra fields, all that are set are among them
        return values
    return {name: field for name, field in values.items() if name in fields}


_own_types: set[type] = set()


_encode_fields = msgspec.json.Encoder(enc_hook=_set_fields).encode
