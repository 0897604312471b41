"""Parts of a page that its readers do not see, which the model must not get either.

Hiding by a style sheet, a script or a color is not recognized.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Final

import attrs

from kantan_agents.toolkit.web.styles import TINY, declarations, is_gone, size_of

Attributes = list[tuple[str, "str | None"]]

_NEVER_SEEN: Final = frozenset(
    {
        "audio",
        "canvas",
        "datalist",
        "iframe",
        "noembed",
        "noframes",
        "noscript",
        "object",
        "script",
        "style",
        "svg",
        "template",
        "video",
    }
)
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
# They contain no markup.
_TEXT_ONLY: Final = frozenset(
    {"iframe", "noembed", "noframes", "noscript", "plaintext", "textarea", "title", "xmp"}
)

# HTML allows omitted end tags, and ignores one without an open element in its scope. A less exact parser ends
# a hidden element too early. Where these rules differ from HTML, they hide more.
_SCOPE: Final = frozenset({"caption", "html", "marquee", "object", "select", "table", "td", "template", "th"})
_BUTTON_SCOPE: Final = _SCOPE | {"button"}
_TABLE: Final = frozenset({"html", "table", "template"})
_OF_TABLES: Final = frozenset({"caption", "colgroup", "tbody", "td", "tfoot", "th", "thead", "tr"})
_BARRIERS: Final = {"li": _SCOPE | {"ol", "ul"}, "table": _TABLE, **dict.fromkeys(_OF_TABLES, _TABLE)}
_NEVER_CLOSED: Final = frozenset({"body", "html", "plaintext"})
# A page that hides all of itself shows it by a script, or readers would see nothing.
_WHOLE: Final = ("body", "html")
_ENDS_PARAGRAPH: Final = frozenset(
    {"address", "article", "aside", "blockquote", "center", "dd", "details", "dialog", "dir", "div"}
    | {"dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5"}
    | {"h6", "header", "hgroup", "hr", "li", "listing", "main", "menu", "nav", "ol", "p", "plaintext"}
    | {"pre", "search", "section", "summary", "ul", "xmp"}
)
_ORDINARY: Final = frozenset({"audio", "canvas", "datalist", "dialog", "svg", "video"})
_SPECIAL: Final = (
    _ENDS_PARAGRAPH | _SCOPE | _OF_TABLES | _VOID | _NEVER_SEEN | _TEXT_ONLY | {"body", "button"}
) - _ORDINARY
_PASSED_BY_ITEMS: Final = frozenset({"address", "div", "p"})
_ROWS: Final = ("td", "th", "tr", "caption", "tbody", "thead", "tfoot")
_ENDS_CELL: Final = {
    "td": ("td", "th"),
    "th": ("td", "th"),
    "tr": ("td", "th", "tr"),
    "tbody": _ROWS,
    "thead": _ROWS,
    "tfoot": _ROWS,
}
_ITEMS: Final = {"li": ("li",), "dd": ("dd", "dt"), "dt": ("dd", "dt")}
# If another end tag closes one of them, a new one of the kind follows, until its own end tag.
_FORMATTING: Final = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)


@attrs.frozen
class _Element:
    """An open element; ``tag`` is empty after its end tag, while inner elements are open.

    Nothing inside is visible if it ``is_gone``; inner elements may differ if it ``is_tiny`` or ``is_veiled``.
    """

    tag: str = ""
    hides: bool = False
    is_apart: bool = False
    is_gone: bool = False
    is_tiny: bool = False
    is_veiled: bool = False

    @property
    def is_hidden(self) -> bool:
        return self.is_gone or self.is_tiny or self.is_veiled


# These end elsewhere than the parser of the standard library thinks. Tags are matched too, as the value of an
# attribute may contain any of this.
_ATTRIBUTES: Final = r"[^>=]*(?:=(?:\s*\"[^\"]*(?:\"|\Z)|\s*'[^']*(?:'|\Z)|)[^>=]*)*(?:>|\Z)"
_NOT_TEXT: Final = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rf"|<(script|style|iframe|noembed|noframes|noscript)(?=[\s/>]){_ATTRIBUTES}"
    r".*?(?:</\1(?=[\s/>])[^>]*(?:>|\Z)|\Z)"
    r"|<(?:!(?!doctype)|\?|/(?![a-z>]))[^>]*(?:>|\Z)"
    rf"|(</?[a-z]{_ATTRIBUTES})",
    re.IGNORECASE | re.DOTALL,
)


def without_comments(html: str) -> str:
    """Return a page without comments, scripts and styles."""
    return _NOT_TEXT.sub(lambda found: found[2] or "", html)


class OpenElements:
    """The open elements at a position in a page."""

    def __init__(self) -> None:
        self._stack: list[_Element] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._special: list[int] = []
        self._blocks: list[int] = []
        self._reopened: Counter[str] = Counter()

    @property
    def is_hidden(self) -> bool:
        """Whether a reader does not see the current position."""
        return bool(self._reopened) or self._top.is_hidden

    @property
    def is_apart(self) -> bool:
        """Whether an element never shows its content, such as a script."""
        return self._top.is_apart

    @property
    def _top(self) -> _Element:
        return self._stack[-1] if self._stack else _Element()

    def opens(self, tag: str, attributes: Attributes) -> bool:
        """Process a start tag; return whether the element is hidden."""
        top = self._stack[-1].tag if self._stack else ""
        if top in _TEXT_ONLY or (tag in _OF_TABLES and self._place_of("table") < 0):
            return True  # it is text, or nothing
        if tag in _ENDS_PARAGRAPH and self._places.get("p"):
            self._close_in(("p",), _BUTTON_SCOPE)
        if tag in _ITEMS:
            block = self._last(self._blocks)
            if block >= 0 and self._stack[block].tag in _ITEMS[tag]:
                self._close((self._stack[block].tag,), block - 1)
        elif tag in _ENDS_CELL:
            self._close_in(_ENDS_CELL[tag], _TABLE)
        elif tag == "button":
            self._close_in(("button",), _SCOPE)
        elif tag == "a":
            self._forget("a", _SCOPE)
        elif tag in ("option", "optgroup") and top == "option":
            self._close(("option",), -1)
        element = _element(tag, attributes, self._top)
        if tag not in _VOID:
            self._push(element)
        return bool(self._reopened) or element.is_hidden

    def closes(self, tag: str) -> bool:
        """Process an end tag; return whether the element is hidden."""
        was_hidden = self.is_hidden
        if (self._top.tag in _TEXT_ONLY and self._top.tag != tag) or tag in _NEVER_CLOSED:
            return was_hidden
        if tag in self._reopened:
            self._reopened[tag] -= 1
            self._reopened += Counter()  # drops zeros
        if tag in _FORMATTING or tag == "form":
            closed = self._forget(tag, _SCOPE)
        elif tag in _SPECIAL or tag == "dialog":
            closed = self._close_in((tag,), _BARRIERS.get(tag, _SCOPE))
        else:
            closed = self._close((tag,), self._last(self._special))
        return was_hidden if closed is None else closed.is_hidden

    def _push(self, element: _Element) -> None:
        place = len(self._stack)
        self._places[element.tag].append(place)
        if element.tag in _SPECIAL:
            self._special.append(place)
            if element.tag not in _PASSED_BY_ITEMS:
                self._blocks.append(place)
        self._stack.append(element)

    def _close_in(self, tags: tuple[str, ...], barriers: frozenset[str]) -> _Element | None:
        if all(self._place_of(tag) < 0 for tag in tags):
            return None
        return self._close(tags, max(self._place_of(tag) for tag in barriers if tag not in tags))

    def _close(self, tags: tuple[str, ...], barrier: int) -> _Element | None:
        places = [place for tag in tags if (place := self._place_of(tag)) > barrier]
        closed = None
        while places and len(self._stack) > min(places):
            closed = self._pop()
            if closed.tag in _FORMATTING and closed.hides and len(self._stack) > min(places):
                self._reopened[closed.tag] += 1
        while self._stack and not self._stack[-1].tag:
            self._pop()
        return closed

    def _pop(self) -> _Element:
        closed = self._stack.pop()
        if closed.tag:
            self._places[closed.tag].pop()
        for ended in (self._special, self._blocks):
            if ended and ended[-1] == len(self._stack):
                ended.pop()
        return closed

    def _forget(self, tag: str, barriers: frozenset[str]) -> _Element | None:
        """Inner elements stay open."""
        place = self._place_of(tag)
        if place < 0 or place <= max(map(self._place_of, barriers)):
            return None
        if place == len(self._stack) - 1:
            return self._close((tag,), place - 1)
        self._places[tag].pop()
        found = self._stack[place]
        self._stack[place] = attrs.evolve(found, tag="")
        return found

    def _last(self, places: list[int]) -> int:
        while places and not self._stack[places[-1]].tag:
            places.pop()
        return places[-1] if places else -1

    def _place_of(self, tag: str) -> int:
        places = self._places.get(tag)
        return places[-1] if places else -1


_plain: Final = {tag: _Element(tag) for tag in _SPECIAL | _FORMATTING | {"span"} if tag not in _NEVER_SEEN}
"""Shared elements without attributes, as most are."""


def _element(tag: str, attributes: Attributes, outer: _Element) -> _Element:
    if tag in _WHOLE:
        attributes = []
    if not attributes and not outer.is_hidden and tag in _plain and tag != "dialog":
        return _plain[tag]
    given: dict[str, str] = {}
    for name, value in attributes:
        given.setdefault(name, value or "")  # of several, browsers take the first
    style = declarations(given.get("style", ""))
    size, visibility = size_of(style), style.get("visibility")
    is_gone_itself = (
        "hidden" in given
        or given.get("aria-hidden", "").strip().lower() == "true"
        or (tag == "dialog" and "open" not in given)
        or is_gone(style)
    )
    is_tiny, is_veiled = size is not None and size <= TINY, visibility in ("hidden", "collapse")
    is_apart = outer.is_apart or tag in _NEVER_SEEN
    return _Element(
        tag,
        hides=is_gone_itself or is_tiny or is_veiled,
        is_apart=is_apart,
        is_gone=outer.is_gone or is_apart or is_gone_itself,
        is_tiny=is_tiny or (outer.is_tiny and size is None),
        is_veiled=is_veiled or (outer.is_veiled and visibility is None),
    )
