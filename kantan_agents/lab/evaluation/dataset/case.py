"""One input of a dataset, with its reference output and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs

from kantan_agents.errors import InvalidCaseError, InvalidOptionError
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, json_copy
from kantan_agents.support.arguments import shown
from kantan_agents.traces.capture.canonical import content_hash

_ID_LENGTH: Final = 16
NESTED: Final = "is_nested"
"""Metadata key: the run started inside another run or span, so its input is not a command."""


@attrs.frozen(slots=False)
class Case:
    """One input of a dataset, often with an expected output.

    All values are JSON data and are copied, so later changes of a passed dict do not change the case.

    Attributes:
        input: The user's input for the agent: a string, or a list of input items.
        id: Unique id in the dataset; by default the first 16 digits of ``hash``.
        context: Values for the context of each run.
        expected: A reference output: a string, or JSON data for a structured output; None if unknown.
        metadata: Anything else, such as the ``trace_id`` of the run that it was created from.
        conversation: Id of its conversation. Cases of a conversation are not independent: a split keeps them
            together, and a comparison treats them as one cluster.
        earlier: Items of the conversation before the input. Each run gets them in a session.

    Raises:
        InvalidCaseError: E101, a value has the wrong type or is not JSON data.
    """

    input: str | Sequence[Mapping[str, Any]]
    id: str = ""
    context: Mapping[str, Any] = attrs.field(factory=dict)
    expected: Any = None
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    conversation: str | None = None
    earlier: Sequence[Mapping[str, Any]] = ()

    def __attrs_post_init__(self) -> None:
        name = self.id if isinstance(self.id, str) and self.id else _beginning(self.input)
        try:
            values = {
                "input": _input(self.input),
                "context": _mapping(self.context, "context"),
                "expected": json_copy(self.expected, "expected"),
                "metadata": _mapping(self.metadata, "metadata"),
                "earlier": _items(self.earlier, "earlier"),
            }
            _check_name(self.id, "id")
            _check_conversation(self.conversation)
        except NotJSONDataError as error:
            raise InvalidCaseError(case=name, reason=str(error)) from error
        for key, value in values.items():
            object.__setattr__(self, key, value)
        if not self.id.strip():
            object.__setattr__(self, "id", self.hash[:_ID_LENGTH])

    @cached_property
    def hash(self) -> str:
        """SHA-256 of input, earlier items, context and expected output, as 64 hex digits."""
        data = {"input": self.input, "context": self.context, "expected": self.expected}
        return content_hash({**data, "earlier": self.earlier} if self.earlier else data)

    @property
    def whole_input(self) -> str | Sequence[Mapping[str, Any]]:
        """The whole conversation: the input, preceded by the earlier items, if any."""
        if not self.earlier:
            return self.input
        given = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input
        return [*self.earlier, *given]


def _input(value: Any) -> Any:
    if isinstance(value, str):
        return json_copy(value, "input")
    return _items(value, "input", "a str or ")


def _items(value: Any, place: str, other: str = "") -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(item, Mapping) for item in value):
        return json_copy(value, place)
    raise NotJSONDataError(f"{place} must be {other}a list of dicts, not {shown(value)}")


def _mapping(value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise NotJSONDataError(f"{place} must be a dict, not {shown(value)}")
    return json_copy(value, place)


def _check_conversation(value: Any) -> None:
    if value is None:
        return
    _check_name(value, "conversation")
    if not value.strip():
        raise NotJSONDataError("conversation is empty; use None if it is part of none")


def _check_name(value: Any, place: str) -> None:
    if not isinstance(value, str):
        raise NotJSONDataError(f"{place} must be a str, not {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # no database could store it
        raise NotJSONDataError(f"{place} {shown(value)} is not valid Unicode") from error


def _beginning(value: Any) -> str:
    return shown(value)[1:-1] if isinstance(value, str) else shown(value)


def checked_cases(cases: Any) -> tuple[Case, ...]:
    """Check the types (E75) and that ids are unique (E101)."""
    if not isinstance(cases, Iterable) or isinstance(cases, (str, bytes)):
        raise InvalidOptionError(option="cases", reason=f"must be a list of cases, not {shown(cases)}")
    given = tuple(cases)
    places: dict[str, int] = {}
    for place, case in enumerate(given):
        if not isinstance(case, Case):
            raise InvalidOptionError(
                option="cases", reason=f"cases[{place}] must be a Case, not {shown(case)}"
            )
        first = places.setdefault(case.id, place)
        if first != place:
            reason = f"cases[{first}] and cases[{place}] have this id; give each case its own"
            raise InvalidCaseError(case=case.id, reason=reason)
    return given
