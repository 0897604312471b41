"""``TextRedaction``: redact text, complete or streamed."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping

import attrs

from kantan_agents.middleware.redact.placeholders import Placeholders
from kantan_agents.middleware.redact.rules import Known, Rule, Span, plain

_CONTEXT = 64
_LONG = 1024
_LONGEST_KEY = 16_384


@attrs.frozen
class Finding:
    """A span; ``rule`` is the rule that found the longest part."""

    start: int
    end: int
    rule: str


class TextRedaction:
    """Redacts streamed text, independently of how it is split.

    Text that may be part of a finding is withheld until that is certain.
    """

    def __init__(
        self, rules: Mapping[str, Rule], replace: Callable[[str, str], str], placeholders: Placeholders
    ) -> None:
        self._rules = rules
        self._replace = replace
        self._placeholders = placeholders
        self._context = max([_CONTEXT, *(getattr(rule, "longest", 0) for rule in rules.values())])
        self._text = ""  # emitted text for lookbehind, then the withheld text
        self._start = 0  # start of the withheld text
        self._offset = 0
        self._look_again = 0
        self._waiting: list[str] = []
        self._waiting_length = 0

    def feed(self, piece: str) -> str:
        """Return the certain text."""
        self._waiting.append(piece)
        self._waiting_length += len(piece)
        if len(self._text) + self._waiting_length < self._look_again:
            return ""
        return self._passed(whole=False)

    def end(self) -> str:
        """Return the remaining text."""
        return self._passed(whole=True)

    def _passed(self, *, whole: bool) -> str:
        text = self._text = "".join((self._text, *self._waiting))
        self._waiting, self._waiting_length = [], 0
        found, cut = find(self._rules, self._placeholders, text, self._start, self._offset, whole=whole)
        passed: list[str] = []
        place = self._start
        for finding in found:
            if finding.end > cut:
                break
            passed += (text[place : finding.start], self._replaced(finding, text))
            place = finding.end
        passed.append(text[place:cut])
        dropped = max(0, cut - self._context)
        self._text, self._start, self._offset = text[dropped:], cut - dropped, self._offset + dropped
        withheld = len(text) - cut
        # Searching a long withheld text again for each small piece would take quadratic time. No real key is
        # longer than ``_LONGEST_KEY``; beyond it, the text doubles.
        more = max(withheld // 8, withheld - _LONGEST_KEY) if withheld > _LONG else 0
        self._look_again = len(self._text) + more
        return "".join(passed)

    def _replaced(self, finding: Finding, text: str) -> str:
        return self._replace(finding.rule, text[finding.start : finding.end])


def find(
    rules: Mapping[str, Rule], placeholders: Placeholders, text: str, start: int, offset: int, *, whole: bool
) -> tuple[list[Finding], int]:
    """Return the findings, and the index up to which more text cannot change them."""
    searched = plain(text)
    taken, cut = placeholders.find(text, start, whole=whole)
    spans: list[tuple[Span, str]] = []
    known: list[Span] = []  # from the preceding name on
    # The rule for secrets, usually the last, may withhold most; if nothing is certain, skip the others.
    for name, rule in reversed(tuple(rules.items())):
        if cut <= start:
            return [], start
        found, final = rule.find(searched, start, offset, whole=whole)
        cut = min(cut, final)
        spans[:0] = (((span[0], span[1]), name) for span in found if not _inside(span, taken))
        known += ((span[2], span[1]) for span in found if len(span) > 2)  # noqa: PLR2004
    findings = _merged(spans)
    # A finding or placeholder that crosses the cut is incomplete, so the cut moves before it.
    whole_ones = [(finding.start, finding.end) for finding in findings]
    while (
        crossed := _crossing(whole_ones, cut) or _crossing(known, cut) or _crossing(taken, cut)
    ) is not None:
        cut = crossed[0]
    return findings, cut


def _inside(span: Span | Known, taken: list[Span]) -> bool:
    place = bisect_right(taken, (span[0], sys.maxsize)) - 1
    return place >= 0 and span[1] <= taken[place][1]


def _crossing(spans: list[Span], cut: int) -> Span | None:
    place = bisect_left(spans, (cut, 0)) - 1
    return spans[place] if place >= 0 and spans[place][1] > cut else None


def _merged(spans: list[tuple[Span, str]]) -> list[Finding]:
    """Merge overlapping findings under the rule of the longest."""
    merged: list[Finding] = []
    longest = 0
    for (start, end), rule in sorted(spans, key=lambda found: (found[0][0], -found[0][1])):
        last = merged[-1] if merged else None
        if last is None or start >= last.end:
            merged.append(Finding(start, end, rule))
            longest = end - start
            continue
        name = rule if end - start > longest else last.rule
        longest = max(longest, end - start)
        merged[-1] = Finding(last.start, max(last.end, end), name)
    return merged
