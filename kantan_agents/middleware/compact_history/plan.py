"""``CompactionPlan``: what is left out of a conversation when it is sent."""

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
    """What is left out, by the places of the items in the conversation.

    It concerns the beginning of the conversation only, so it goes on to apply while the conversation grows,
    and the requests made with it begin alike.

    Attributes:
        replaced: The items that are sent in place of others: results as stubs, or cut.
        removed: The places of items that are left out.
        summary: A summary of the items that are left out; None if there is none.
        unread: How many of the items that are left out are not in the summary.
    """

    replaced: Mapping[int, Any] = attrs.field(factory=dict)
    removed: frozenset[int] = frozenset()
    summary: str | None = None
    unread: int = 0

    @property
    def covers(self) -> int:
        """How many items at the beginning of a conversation it must have for the plan to apply."""
        return max([-1, *self.replaced, *self.removed]) + 1

    @property
    def text(self) -> str | None:
        """The text that is sent in place of the items that are left out; None if there are none."""
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
        """The item that holds ``text``.

        It has the role of a user: a text of a model that has read foreign texts must not have the authority
        of instructions, and many models want the first message to be the user's.
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
"""Nothing is left out."""


def read_text(text: str) -> tuple[int, str | None] | None:
    """Return what the text of a plan says: the number of unread items, and the summary.

    None for other texts.
    """
    notice = _WRITTEN_NOTICE.match(text)
    unread = 0 if notice is None else int(notice[1].replace(",", ""))
    rest = text if notice is None else text[notice.end() :].removeprefix("\n")
    if notice is not None and not rest:
        return unread, None
    header = _WRITTEN_SUMMARY.match(rest)
    return None if header is None else (unread, rest[header.end() :].removeprefix("\n"))
