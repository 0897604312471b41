"""The rules of ``Redact``.

A rule searches text that may be incomplete, and returns its findings and the index up to which more text
cannot change them. Decisions depend on nearby characters only, so the running time is linear, and streamed
text is redacted like complete text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware.redact.phones import NO_NUMBER_BEFORE, NUMBER_SIGNS, PHONE, phone_length
from kantan_agents.support.secrets import scan

Span = tuple[int, int]
Known = tuple[int, int, int]
"""Start, end, and the index of the preceding name that identifies the secret."""

_WIDE = dict(zip(range(0xFF01, 0xFF5F), map(chr, range(0x21, 0x7F)), strict=True))
_DASHES = dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212), "-")
_SPACES = dict.fromkeys((0x00A0, 0x2007, 0x2009, 0x202F, 0x3000), " ")
_PLAIN = {**_WIDE, **_DASHES, **_SPACES}


class Rule(Protocol):
    """Finds one kind of data."""

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[Sequence[Span | Known], int]:
        """Return the findings, and the index up to which more text cannot change them.

        Characters before ``start`` are for lookbehind only. ``offset`` characters precede the section
        ``text``, which ends the whole text if ``whole``.
        """
        ...


def plain(text: str) -> str:
    """Convert full-width characters to ASCII; the length stays the same."""
    return text if text.isascii() else text.translate(_PLAIN)


class SignsRule:
    """Finds data of bounded length that consists of a small set of characters.

    ``pattern`` matches candidates of at most ``longest`` characters, with lookaround. ``check`` returns the
    length of the match within a candidate, 0 without one.
    """

    def __init__(self, pattern: str, signs: str, longest: int, check: Callable[[re.Match[str]], int]) -> None:
        self._pattern = re.compile(pattern, re.ASCII)
        self._signs = signs
        self._longest = longest
        self._check = check

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[Span], int]:  # noqa: ARG002
        """Final up to the run of ``signs`` at the end of the text."""
        final = len(text)
        if not whole:
            tail = text[max(start, final - self._longest) :]
            final -= len(tail) - len(tail.rstrip(self._signs))
        spans: list[Span] = []
        place = start
        while (found := self._pattern.search(text, place)) is not None and found.start() < final:
            length = self._check(found)
            place = found.start() + (length or 1)
            if length:
                spans.append((found.start(), place))
        return spans, final


def card_length(found: re.Match[str]) -> int:
    """Return the length of a card number: 13 to 19 digits with a check digit."""
    text = found[0]
    digits = [(place, int(sign)) for place, sign in enumerate(text) if sign.isdigit()]
    for count in range(min(len(digits), 19), 12, -1):
        end = digits[count - 1][0] + 1
        between_groups = end == len(text) or not text[end].isdigit()
        if between_groups and _passes_luhn([digit for _, digit in digits[:count]]):
            return end
    return 0


def _passes_luhn(digits: list[int]) -> bool:
    doubled = [digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(number // 10 + number % 10 for number in doubled)) % 10 == 0


def address_length(found: re.Match[str]) -> int:
    """Return the length of an IP address, or 0."""
    candidate = found[0].rstrip(".")
    if candidate.endswith(":") and not candidate.endswith("::"):
        candidate = candidate[:-1]
    colons = candidate.count(":")
    if colons and (colons > 8 or (colons != 7 and "::" not in candidate)):  # noqa: PLR2004
        return 0  # a fast exit for frequent cases: times, series of numbers
    if not any(sign.isalnum() for sign in candidate):
        return 0
    try:
        ipaddress.ip_address(candidate)
    except ValueError:
        return 0
    return len(candidate)


_HEX = "0123456789abcdefABCDEF:."


class AddressRule:
    """Finds IPv4 and IPv6 addresses."""

    def __init__(self) -> None:
        self._v4 = SignsRule(
            r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)", "0123456789.", 20, address_length
        )
        # One colon before the address belongs to the preceding word, two belong to the address.
        self._v6 = SignsRule(
            r"(?:(?<![\w:.])|(?<=[^\w:.]:)|(?<=\w:))(?:[0-9A-Fa-f]{1,4}:|::)[0-9A-Fa-f:.]{1,45}(?![\w:])",
            _HEX,
            56,
            address_length,
        )

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[Span], int]:
        """Return the addresses."""
        found = [rule.find(text, start, offset, whole=whole) for rule in (self._v4, self._v6)]
        return [span for spans, _ in found for span in spans], min(final for _, final in found)


_LOCAL = r"a-zA-Z0-9\u00c0-\u024f._%+'-"
_LOCAL_BACKWARDS = re.compile(f"[{_LOCAL}]{{0,64}}")
_LABEL = r"[a-zA-Z0-9\u00c0-\u024f](?:[a-zA-Z0-9\u00c0-\u024f-]{0,61}[a-zA-Z0-9\u00c0-\u024f])?"
# The rules for numbers treat a number right after the domain as part of a word, so an address includes it.
_DOMAIN = re.compile(
    rf"(?:{_LABEL}\.)+(?:xn--[a-zA-Z0-9-]{{2,59}}|[a-zA-Z\u00c0-\u024f]{{2,63}})(?:\d(?:[\d.-]*\d)?)?",
    re.ASCII,
)
_DOMAIN_SIGNS = re.compile(r"[a-zA-Z0-9\u00c0-\u024f.-]*")
_LONGEST_DOMAIN = 255
_LEADING = ".'%-"


class EmailRule:
    """Finds e-mail addresses."""

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[Span], int]:  # noqa: ARG002
        """Final up to the word at the end of the text."""
        final = len(text)
        if not whole:
            final -= self._local_length(text, start, final)
        spans: list[Span] = []
        lowest = start
        at = text.find("@", start)
        while at >= 0:
            first = at - self._local_length(text, lowest, at)
            if first == at:
                at = text.find("@", at + 1)
                continue
            end = at + 1 + _LONGEST_DOMAIN
            reaches_end = end > len(text) and _DOMAIN_SIGNS.fullmatch(text, at + 1) is not None
            if reaches_end and not whole:
                return spans, min(final, first)
            while first < at and text[first] in _LEADING:  # quotes and punctuation around an address
                first += 1
            domain = _DOMAIN.match(text, at + 1, end)
            if domain is not None and first < at:
                spans.append((first, domain.end()))
                lowest = domain.end()
            at = text.find("@", max(at + 1, lowest))
        return spans, final

    @staticmethod
    def _local_length(text: str, start: int, end: int) -> int:
        backwards = text[max(start, end - 64) : end][::-1]
        found = _LOCAL_BACKWARDS.match(backwards)
        return len(found[0]) if found is not None else 0


class SecretRule:
    """Finds keys, tokens and passwords, as the recorder does; ``longest`` is the lookbehind."""

    longest = 128

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[Known], int]:  # noqa: ARG002
        """The names before secrets are not part of them."""
        secrets, final = scan(text, start, whole=whole)
        return [(secret.start, secret.end, secret.begin) for secret in secrets], final


# Digits between the letters a to f belong to an id or a hash.
_CARD = (
    rf"(?<!\d){NO_NUMBER_BEFORE}[2-6](?:(?<![a-f].)\d{{12,18}}(?!\d)|\d{{12,18}}(?![0-9a-f])"
    r"|\d{3}(?:[ .-]\d{2,7}){2,5}(?!\d))"
)

SECRET = "secret"  # noqa: S105 - a name
KINDS: Mapping[str, Rule] = {
    "email": EmailRule(),
    "phone": SignsRule(PHONE, NUMBER_SIGNS, 100, phone_length),
    "card": SignsRule(_CARD, NUMBER_SIGNS, 50, card_length),
    "ip": AddressRule(),
    SECRET: SecretRule(),
}
"""The built-in rules, in the order in which they are applied."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")


def make_rules(rules: Any, longest: int) -> dict[str, Rule]:
    """Read the option ``rules`` of ``Redact``; E75 if it is invalid."""
    if rules is None:
        return dict(KINDS)
    made: dict[str, Rule] = {}
    for entry in _entries(rules):
        if isinstance(entry, Mapping):
            made.update({_name(name): PatternRule.make(pattern, longest) for name, pattern in entry.items()})
        elif isinstance(entry, str) and entry in KINDS:
            made[entry] = KINDS[entry]
        else:
            raise _invalid(f"there is no rule {entry!r}; there are {', '.join(KINDS)}")
    if not made:
        raise _invalid("there are none")
    return made


def _entries(rules: Any) -> Iterable[Any]:
    if isinstance(rules, (str, Mapping)):
        return (rules,)
    if not isinstance(rules, Iterable):
        raise _invalid(f"must be names and mappings of names to patterns, not {rules!r}")
    return rules


def _name(name: Any) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None or name in KINDS:
        reason = "must be letters, digits and underscores, and not that of a rule that is there"
        raise _invalid(f"the name of a pattern {reason}: {name!r}")
    return name


def _invalid(reason: str) -> InvalidOptionError:
    return InvalidOptionError(option="rules", reason=reason)


@attrs.frozen
class PatternRule:
    """Finds the matches of a regular expression.

    The text is searched in blocks of ``longest`` characters. A match may extend to the end of the next block;
    only a match that reaches that end is extended further. So the running time is linear, even if the pattern
    is slow within a block.
    """

    pattern: re.Pattern[str]
    longest: int

    @classmethod
    def make(cls, pattern: Any, longest: int) -> PatternRule:
        """Compile a pattern; E75 if it is invalid or matches the empty string."""
        try:
            compiled = re.compile(pattern)
            matches_empty = compiled.match("") is not None
        except (re.error, TypeError) as error:
            raise InvalidOptionError(option="rules", reason=f"pattern {pattern!r}: {error}") from None
        if matches_empty:
            raise InvalidOptionError(option="rules", reason=f"pattern {pattern!r} matches an empty text")
        return cls(compiled, longest)

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[tuple[int, int]], int]:
        """See ``Rule.find``."""
        spans: list[tuple[int, int]] = []
        place = start
        while place < len(text):
            block_end = ((offset + place) // self.longest + 1) * self.longest - offset
            end = block_end + self.longest
            if end > len(text) and not whole:
                return spans, place
            found = self.pattern.search(text, place, min(end, len(text)))
            if found is None or found.start() >= block_end:
                place = min(block_end, len(text))
                continue
            first = found.start()
            while found is not None and found.end() == end < len(text) + (not whole):
                end = first + 2 * (end - first)
                if end > len(text) and not whole:
                    return spans, first
                found = self.pattern.match(text, first, min(end, len(text)))
            if found is None or found.end() == first:
                place = first + 1
                continue
            spans.append((first, found.end()))
            place = found.end()
        return spans, len(text)
