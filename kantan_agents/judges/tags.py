"""Finds tags such as ``[MOVEMENT:2]`` in a text."""

from __future__ import annotations

import re
from functools import lru_cache

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int

DEFAULT_TAG = "MOVEMENT"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# No rule has a longer number, and parsing a million digits would take long.
_LONGEST_NUMBER = 9


@attrs.frozen
class TagMatch:
    """The tag that was found in a text.

    Attributes:
        step: The number of the last valid tag, counted from 1; None without a valid tag.
        problem: Why no tag is valid.
    """

    step: int | None
    problem: str | None = None


def find_tag(content: str, count: int, tag: str = DEFAULT_TAG) -> int | None:
    """Return the number in the last valid tag in ``content``, without calling a model.

    The case of letters does not matter, and full-width brackets, colons and digits are accepted. The last tag
    counts because agents often quote the list of all tags first.

    Args:
        content: The output of an agent.
        count: The number of rules. Tags with the numbers 1 to ``count`` are valid.
        tag: Name of the tag.

    Raises:
        InvalidOptionError: E75, ``content`` is not a str, ``count`` is less than 1, or ``tag`` is not a valid
            name.

    Returns:
        The number, counted from 1, or None.
    """
    return read_tags(checked_content(content), checked_int("count", count, 1), checked_tag(tag)).step


def read_tags(content: str, count: int, tag: str) -> TagMatch:
    """Return the last tag with a number from 1 to ``count``, or the reason why no tag is valid."""
    step, out_of_range = None, None
    for match in _pattern(tag).finditer(content):
        sign, digits = match.groups()
        number = 0 if sign or len(digits) > _LONGEST_NUMBER else int(digits)
        if 1 <= number <= count:
            step = number
        else:
            shown = digits if len(digits) <= _LONGEST_NUMBER else f"{digits[:_LONGEST_NUMBER]}..."
            out_of_range = sign + shown
    if step is not None:
        return TagMatch(step)
    if out_of_range is not None:
        return TagMatch(None, f"the tag [{tag}:{out_of_range}] matches no rule from 1 to {count}")
    return TagMatch(None, f"no tag [{tag}:N]")


def checked_tag(tag: object) -> str:
    """Return the name of a tag; E75 unless it is one letter and then letters, digits, ``_`` and ``-``."""
    if isinstance(tag, str) and _NAME.fullmatch(tag):
        return tag
    reason = f"must be a letter, then letters, digits, _ or -, not {tag!r}"
    raise InvalidOptionError(option="tag", reason=reason)


def checked_content(content: object) -> str:
    """Return the output to judge; E75 unless it is a str."""
    if isinstance(content, str):
        return content
    raise InvalidOptionError(option="content", reason=f"must be a str, not {type(content).__name__}")


@lru_cache(maxsize=64)
def _pattern(tag: str) -> re.Pattern[str]:
    # No part matches the first character of the next one, so the time is linear in the length of the text.
    gap = "[ \\t\u3000]*"
    number = "([-\uff0d\u2212]?)([0-9\uff10-\uff19]+)"
    return re.compile(
        rf"[\[\uff3b]{gap}{re.escape(tag)}{gap}[:\uff1a]{gap}{number}{gap}[\]\uff3d]", re.IGNORECASE
    )
