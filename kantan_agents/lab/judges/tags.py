"""Finds tags such as ``[MOVEMENT:2]`` in a string."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.structured.parsing.reasoning import reply_in
from kantan_agents.support.arguments import checked_int

DEFAULT_TAG = "MOVEMENT"

_GAP = " \t\u3000"
# No rule has a longer number, and parsing a million digits would take long.
_LONGEST_NUMBER = 9


@attrs.frozen
class TagMatch:
    """The number of a tag, from 1, or why there is none."""

    step: int | None
    problem: str | None = None


def find_tag(content: str, count: int, tag: str = DEFAULT_TAG) -> int | None:
    """Return the number in the last valid tag in ``content``, without calling a model.

    The case of letters does not matter. Full-width brackets and colons, and the digits of any script are
    accepted. The last tag counts because agents often quote the list of all tags first. Tags in reasoning
    (``<think>...</think>`` and the like) do not count.

    Args:
        content: The output of an agent.
        count: The number of rules. Tags with the numbers 1 to ``count`` are valid.
        tag: Name of the tag.

    Raises:
        InvalidOptionError: E75, ``content`` is not a str, ``count`` is less than 1, or ``tag`` is not a valid
            name.

    Returns:
        The number, from 1, or None.
    """
    return read_tags(checked_content(content), checked_int("count", count, 1), checked_tag(tag)).step


def read_tags(content: str, count: int, tag: str) -> TagMatch:
    """Return the last valid tag, or why there is none."""
    step, out_of_range = None, None
    wanted = _folded(tag)
    for match in _pattern(len(tag)).finditer(reply_in(content)):
        name, sign, digits = match.groups()
        if _folded(name.strip(_GAP)) != wanted:
            continue
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


def tag_text(tag: str, step: int) -> str:
    """Return the tag of a rule, such as ``[MOVEMENT:2]``."""
    return f"[{tag}:{step}]"


def checked_tag(tag: object) -> str:
    """Return a tag in Unicode's form NFC; E75 if invalid."""
    # Vowel signs and accents (M) are part of the letters of many scripts.
    if (
        isinstance(tag, str)
        and unicodedata.category(tag[:1] or "_")[0] == "L"
        and all(unicodedata.category(each)[0] in "LMN" or each in "_-." for each in tag)
    ):
        return unicodedata.normalize("NFC", tag)
    reason = f"must be a letter, then letters, digits, _, - or ., not {tag!r}"
    raise InvalidOptionError(option="tag", reason=reason)


def checked_content(content: object) -> str:
    """Return the output; E75 unless it is a str."""
    if isinstance(content, str):
        return content
    raise InvalidOptionError(option="content", reason=f"must be a str, not {type(content).__name__}")


def _folded(name: str) -> str:
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@lru_cache(maxsize=64)
def _pattern(length: int) -> re.Pattern[str]:
    # No part matches the first character of the next one, and the name has a limit, so the time is linear in
    # the length of the text. Only the name is normalized: normalizing a long text may take quadratic time.
    longest = 4 * length + 100
    gap = f"[{_GAP}]*"
    number = "([-\uff0d\u2212]?)(\\d+)"
    name = rf"([^\[\]\uff3b\uff3d:\uff1a\r\n]{{1,{longest}}})"
    return re.compile(rf"[\[\uff3b]{name}[:\uff1a]{gap}{number}{gap}[\]\uff3d]")
