"""``CompactionPlan``: the omitted parts of a conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

SUMMARY = "[Summary of {count:,} earlier messages and tool calls, written by a model to save space]"
NOTICE = "[{count:,} earlier messages and tool calls removed to save space]"

_COUNT = re.escape("{count:,}")
_WRITTEN_NOTICE, _WRITTEN_SUMMARY = (
    re.compile(re.escape(text).replace(_COUNT, r"([\d,]+)")) for text in (NOTICE, SUMMARY)
)


@attrs.frozen
class CompactionPlan:
    """Omitted and replaced items, by index.

    It concerns a prefix of the conversation, so it still applies when the conversation grows, and later
    requests have the same prefix. The summary does not cover ``unread`` of the removed items.
    """

    replaced: Mapping[int, Any] = attrs.field(factory=dict)
    removed: frozenset[int] = frozenset()
    summary: str | None = None
    unread: int = 0

    @property
    def covers(self) -> int:
        """Length of the prefix."""
        return max([-1, *self.replaced, *self.removed]) + 1

    @property
    def text(self) -> str | None:
        """Replaces the omitted items; None if there are none."""
        if not self.removed:
            return None
        parts = []
        if self.unread:
            parts.append(NOTICE.format(count=self.unread))
        if self.summary is not None:
            parts += [SUMMARY.format(count=len(self.removed) - self.unread), self.summary]
        return "\n".join(parts)

    @property
    def note(self) -> dict[str, Any] | None:
        """The item with ``text``.

        Its role is user: text of a model that has read untrusted text must not have the authority of
        instructions, and many models require that the user's message is first.
        """
        text = self.text
        return None if text is None else {"role": "user", "content": text}

    def applied(self, items: Sequence[Any]) -> list[Any]:
        """Return the items that are sent."""
        sent: list[Any] = []
        note, first = self.note, min(self.removed, default=-1)
        for place, item in enumerate(items):
            if place == first:
                sent.append(note)
            if place not in self.removed:
                sent.append(self.replaced.get(place, item))
        return sent


WHOLE = CompactionPlan()
"""The plan that omits nothing."""


def read_text(text: str) -> tuple[int, str | None] | None:
    """Parse the text of a plan; None for other text."""
    notice = _WRITTEN_NOTICE.match(text)
    unread = 0 if notice is None else int(notice[1].replace(",", ""))
    rest = text if notice is None else text[notice.end() :].removeprefix("\n")
    if notice is not None and not rest:
        return unread, None
    header = _WRITTEN_SUMMARY.match(rest)
    return None if header is None else (unread, rest[header.end() :].removeprefix("\n"))
