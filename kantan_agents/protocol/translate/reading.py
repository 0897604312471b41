"""Reading what an API has sent: mistakes are gathered with their paths, nothing else is ever raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.protocol.provider import Message, Role
from kantan_agents.protocol.translate.gathered import Gathered
from kantan_agents.protocol.types import ContentSegment

T = TypeVar("T")
_KINDS: dict[type, str] = {str: "a text", dict: "an object", list: "a list", int: "a whole number"}


class Reading(Gathered):
    """A wire value that is being read; unknown fields are kept in ``extra`` under ``owner``."""

    def check(self) -> None:
        """Raise if there was any mistake.

        Raises:
            InvalidProtocolValueError: E50, with all of them.
        """
        if self.problems:
            raise InvalidProtocolValueError(value=self.format, problems=self.problems)

    def whole(self, data: Any, kind: type[T], path: str = "it") -> T:
        """Return ``data`` if it is of a kind; otherwise that is a mistake nothing can be read beyond."""
        if not isinstance(data, kind):
            self.add(path, f"must be {_KINDS[kind]}, not {type(data).__name__}")
            self.check()
        found: T = data
        return found

    def field(self, data: Mapping[str, Any], name: str, kind: type[T], path: str) -> T | None:
        """Return a field, None if it is missing, null, or of another kind, which is a mistake."""
        value: Any = data.get(name)
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        self.add(f"{path}{name}", f"must be {_KINDS[kind]}, not {type(value).__name__}")
        return None

    def needed(self, data: Mapping[str, Any], name: str, kind: type[T], path: str) -> T | None:
        """Return a field that must be there; None if it is not, which is a mistake."""
        if data.get(name) is None:
            self.add(f"{path}{name}", "is missing")
            return None
        return self.field(data, name, kind, path)

    def objects(self, data: Sequence[Any], path: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the objects of a list with their paths; anything else in it is a mistake."""
        found = []
        for place, item in enumerate(data):
            if isinstance(item, dict):
                found.append((f"{path}[{place}].", item))
            else:
                self.add(f"{path}[{place}]", f"must be an object, not {type(item).__name__}")
        return found

    def kept(self, **parts: Any) -> dict[str, Any]:
        """Return ``extra`` with what the protocol has no field for; parts that are empty are left out."""
        given = {name: part for name, part in parts.items() if part}
        return {self.owner: given} if given else {}

    def value(self, make: Callable[[], T], path: str) -> T | None:
        """Return a value of the protocol; what is wrong with it is a mistake at ``path``."""
        try:
            return make()
        except InvalidProtocolValueError as error:
            self.problems += [f"{path}{problem}" for problem in error.problems]
            return None

    def gathered(
        self,
        blocks: list[tuple[str, dict[str, Any]]],
        read: Callable[[dict[str, Any], str], ContentSegment | None],
    ) -> tuple[list[ContentSegment], list[dict[str, Any]]]:
        """Return the segments of wire blocks, and the blocks that belong to none of them.

        A block that ``read`` does not know (None) is kept in ``extra`` of the segment after it, or else of
        the one before it.
        """
        segments: list[ContentSegment] = []
        waiting: list[dict[str, Any]] = []
        for path, block in blocks:
            segment = read(block, path)
            if segment is None:
                waiting.append(block)
                continue
            segments.append(with_own(segment, self.owner, before=waiting))
            waiting = []
        if waiting and segments:
            segments[-1] = with_own(segments[-1], self.owner, after=waiting)
            waiting = []
        return segments, waiting

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
        """Return a message; what is wrong with it is a mistake at ``path``."""
        return self.value(
            lambda: Message(role, tuple(segments), call_id, tool_name, extra=extra or {}),
            path,
        )


def with_own(segment: ContentSegment, owner: str, **parts: Any) -> ContentSegment:
    """Return a segment with more of what a format keeps in ``extra``."""
    given = {name: part for name, part in parts.items() if part}
    if not given:
        return segment
    return attrs.evolve(segment, extra={**segment.extra, owner: {**segment.extra.get(owner, {}), **given}})


def unknown(data: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields of a wire object that the protocol has no place for."""
    return {name: value for name, value in data.items() if name not in known}
