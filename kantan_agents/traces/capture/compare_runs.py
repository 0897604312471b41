"""Finds the first differing model call of two runs.

Ids are compared by their order, because a provider creates new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal

import attrs

from kantan_agents.traces.capture.calls import ModelAnswer, ModelCallRecord, ModelRequest
from kantan_agents.traces.capture.compare import Difference, answer_differences, differences, same
from kantan_agents.traces.capture.values import RunRecord

_OF_CALL: Final = ("agent", "provider", "model", "api")
_OWN_IDS: Final = ("id", "encrypted_content")
_SHARED_IDS: Final = ("call_id", "approval_request_id")
_PREVIOUS: Final = "previous_response_id"


@attrs.frozen
class Parting:
    """The first difference of two runs; ``what`` is ``"end"`` if one run has no such call."""

    call: int
    what: Literal["request", "answer", "end"]
    differences: Sequence[Difference] = ()


def parting(one: RunRecord, other: RunRecord) -> Parting | None:
    """Return the first difference, if any."""
    calls = zip_longest(_calls(one), _calls(other))
    for place, (first, second) in enumerate(calls):
        if first is None or second is None:
            return Parting(place, "end")
        asked = (*_of_call(first, second), *differences(first.request, second.request))
        if asked:
            return Parting(place, "request", asked)
        answered = (*answer_differences(first.answer, second.answer), *_errors(first, second))
        if answered:
            return Parting(place, "answer", answered)
    return None


def _of_call(first: ModelCallRecord, second: ModelCallRecord) -> Iterator[Difference]:
    for name in _OF_CALL:
        before, after = getattr(first, name), getattr(second, name)
        if before != after:
            yield Difference(name, before, after)


def _errors(first: ModelCallRecord, second: ModelCallRecord) -> Iterator[Difference]:
    before, after = (None if call.error is None else attrs.asdict(call.error) for call in (first, second))
    if not same(before, after):
        yield Difference("error", before, after)


def _calls(run: RunRecord) -> Iterator[ModelCallRecord]:
    ids = _Ids()
    for call in run.model_calls:
        request = ids.in_request(call.request)
        answer = None if call.answer is None else ids.in_answer(call.answer)
        yield attrs.evolve(call, request=request, answer=answer)


class _Ids:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def in_request(self, request: ModelRequest) -> ModelRequest:
        options = dict(request.options)
        if isinstance(options.get(_PREVIOUS), str):
            options[_PREVIOUS] = self._neutral(options[_PREVIOUS])
        given = request.input if isinstance(request.input, str) else self._items(request.input)
        return attrs.evolve(request, input=given, options=options)

    def in_answer(self, answer: ModelAnswer) -> ModelAnswer:
        output = self._items(answer.output)
        return attrs.evolve(answer, output=output, response_id=self._neutral(answer.response_id))

    def _items(self, items: Sequence[Any]) -> list[Any]:
        return [self._item(item) if isinstance(item, Mapping) else item for item in items]

    def _item(self, item: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: self._neutral(value) if key in _SHARED_IDS else value
            for key, value in item.items()
            if key not in _OWN_IDS
        }

    def _neutral(self, found: Any) -> Any:
        if not isinstance(found, str):
            return found
        return f"id {self._numbers.setdefault(found, len(self._numbers) + 1)}"
