"""``WireReader``: parses JSON and collects problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.models.protocol.json_data import find_problem
from kantan_agents.models.protocol.provider import Message, Role
from kantan_agents.models.protocol.translate.losses import TranslationProblems
from kantan_agents.models.protocol.types import ContentSegment

T = TypeVar("T")
_KINDS: dict[type, str] = {str: "a text", dict: "an object", list: "a list", int: "a whole number"}


class WireReader(TranslationProblems):
    """Parses one wire value, with unknown fields in ``extra``."""

    def check(self) -> None:
        """Raise E50 if there are problems."""
        if self.problems:
            raise InvalidProtocolValueError(value=self.format, problems=self.problems)

    def expect(self, data: Any, kind: type[T], path: str = "it") -> T:
        """Return ``data`` of type ``kind``, else raise."""
        if not isinstance(data, kind):
            self.add(path, f"must be {_KINDS[kind]}, not {type(data).__name__}")
        elif (problem := find_problem(data)) is not None:
            self.problems.append(f"{path if path != 'it' else ''}{problem}".lstrip("."))
        self.check()
        found: T = data
        return found

    def expect_answer(self, data: Any, content: str) -> dict[str, Any]:
        """Return an answer's body with the list ``content``, else raise.

        An error body or another API's answer is not an empty answer.
        """
        body = self.expect(data, dict)
        error = body.get("error")
        if not body.get(content) and error is not None:
            said = error.get("message") if isinstance(error, dict) else error
            # Whole, since half an API key cannot be masked.
            self.add("error", f"the API reported an error: {said}")
        self.required(body, content, list, "")
        self.check()
        return body

    def field(self, data: Mapping[str, Any], name: str, kind: type[T], path: str) -> T | None:
        """Return a field of the right type."""
        value: Any = data.get(name)
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        self.add(f"{path}{name}", f"must be {_KINDS[kind]}, not {type(value).__name__}")
        return None

    def required(self, data: Mapping[str, Any], name: str, kind: type[T], path: str) -> T | None:
        """Return a required field."""
        if data.get(name) is None:
            self.add(f"{path}{name}", "is missing")
            return None
        return self.field(data, name, kind, path)

    def objects(self, data: Sequence[Any], path: str) -> list[tuple[str, dict[str, Any]]]:
        """Return a list's objects with their paths."""
        found = []
        for index, item in enumerate(data):
            if isinstance(item, dict):
                found.append((f"{path}[{index}].", item))
            else:
                self.add(f"{path}[{index}]", f"must be an object, not {type(item).__name__}")
        return found

    def extra(self, **parts: Any) -> dict[str, Any]:
        """Return ``extra`` with the non-empty parts."""
        given = {name: part for name, part in parts.items() if part}
        return {self.owner: given} if given else {}

    def build(self, make: Callable[[], T], path: str) -> T | None:
        """Return the value that ``make`` creates, if valid."""
        try:
            return make()
        except InvalidProtocolValueError as error:
            self.problems += [f"{path}{problem}" for problem in error.problems]
            return None

    def segments(
        self,
        blocks: list[tuple[str, dict[str, Any]]],
        read: Callable[[dict[str, Any], str], ContentSegment | None],
    ) -> tuple[list[ContentSegment], list[dict[str, Any]]]:
        """Return the segments of wire blocks, and the blocks that fit no segment.

        Other blocks (``read`` returns None) go to ``extra`` of the next or last segment.
        """
        segments: list[ContentSegment] = []
        pending: list[dict[str, Any]] = []
        for path, block in blocks:
            segment = read(block, path)
            if segment is None:
                pending.append(block)
                continue
            segments.append(with_extra(segment, self.owner, before=pending))
            pending = []
        if pending and segments:
            segments[-1] = with_extra(segments[-1], self.owner, after=pending)
            pending = []
        return segments, pending

    def message(
        self,
        role: Role,
        segments: Sequence[ContentSegment],
        path: str,
        *,
        call_id: str | None = None,
        tool_name: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Message | None:
        """Return a message, if valid."""
        return self.build(
            lambda: Message(role, tuple(segments), call_id, tool_name, extra=extra or {}),
            path,
        )


def with_extra(segment: ContentSegment, owner: str, **parts: Any) -> ContentSegment:
    """Add non-empty parts to a segment's ``extra``."""
    given = {name: part for name, part in parts.items() if part}
    if not given:
        return segment
    return attrs.evolve(segment, extra={**segment.extra, owner: {**segment.extra.get(owner, {}), **given}})


def unknown_fields(data: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return a wire object's unknown fields."""
    return {name: value for name, value in data.items() if name not in known}
