"""HTML as Markdown, without hidden content.

The parser of the standard library is not closed: it drops unfinished markup at the end instead of rereading
it, which makes the time linear.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

from kantan_agents.toolkit.web.hidden import OpenElements, without_comments

_BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
    }
    | {"dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"header", "hr", "html", "legend", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table"}
    | {"tbody", "tfoot", "thead", "tr", "ul"}
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_LISTS = ("ul", "ol")
_DEEPEST = 8
_LONGEST_LINK = 500
_BLANKS = re.compile(r"[ \t\r\n\f]+")


def markdown_of(html: str, url: str) -> tuple[str, int]:
    """Return a page as Markdown, and the number of hidden characters."""
    page = _Page(url)
    page.feed(without_comments(html))
    return page.text(), page.hidden


class _Page(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._lines: list[str] = []
        self._line: list[str] = []
        self._before = ""  # prefix of the next line
        self._open = OpenElements()
        self.hidden = 0
        self._in_title = False
        self._title = ""
        self._code = 0
        self._lists: list[str] = []
        self._link: tuple[str, int] | None = None  # its target, and the start of its label in the line

    def text(self) -> str:
        self._end_line()
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip("\n")
        title = " ".join(self._title.split())
        return f"# {title}\n\n{text}" if title and not text.startswith(f"# {title}") else text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._open.opens(tag, attrs):
            return
        if tag in _BLOCKS:
            self._end_line()
            self._begin_block(tag)
        elif tag == "title":
            self._in_title = not self._title
        elif tag == "br":
            self._end_line()
        elif tag in ("td", "th") and self._line:
            self._line.append(" | ")
        elif tag == "code" and not self._code:
            self._line.append("`")
        elif tag == "a":
            self._link = (dict(attrs).get("href") or "", len(self._line))  # there are no links in links
        elif tag == "img":
            alt = " ".join((dict(attrs).get("alt") or "").split())
            self._line.append(f"[image: {alt}]" if alt else "")

    def handle_endtag(self, tag: str) -> None:
        if self._open.closes(tag):
            return
        if tag in _BLOCKS:
            self._end_line()
            self._end_block(tag)
        elif tag == "title":
            self._in_title = False
        elif tag == "code" and not self._code:
            self._line.append("`")
        elif tag == "a" and self._link is not None:
            self._end_link(*self._link)

    def handle_data(self, data: str) -> None:
        if self._open.is_hidden:
            self.hidden += 0 if self._open.is_apart else len(data.strip())
            return
        if self._in_title:
            self._title += data
        elif self._code:
            first, *others = data.split("\n")
            self._line.append(first)
            for line in others:
                self._end_line()
                self._line.append(line)
        else:
            self._line.append(_BLANKS.sub(" ", data))

    def _begin_block(self, tag: str) -> None:
        if tag == "pre":
            self._lines += ["", "```"]
            self._code += 1
        elif tag in _LISTS:
            self._lists.append(tag)
        elif tag == "li":
            depth = min(max(len(self._lists) - 1, 0), _DEEPEST)
            self._before = f"{'  ' * depth}- "
        elif tag in _HEADINGS:
            self._lines.append("")
            self._before = _HEADINGS[tag]
        elif tag not in ("tr", "div", "dd"):
            self._lines.append("")

    def _end_block(self, tag: str) -> None:
        if tag == "pre" and self._code:
            self._code -= 1
            self._lines += ["```", ""]
        elif tag in _LISTS and self._lists:
            self._lists.pop()
        if tag in _HEADINGS or tag in ("p", "table", *_LISTS):
            self._lines.append("")

    def _end_link(self, href: str, begin: int) -> None:
        self._link = None
        text = "".join(self._line[begin:]).strip()
        try:
            target = urljoin(self._url, href.strip())
        except ValueError:
            return
        if text and href and target.startswith(("http://", "https://")) and len(target) <= _LONGEST_LINK:
            self._line[begin:] = [f"[{text}]({target})"]

    def _end_line(self) -> None:
        line = "".join(self._line)
        line = line.rstrip() if self._code else line.strip()
        self._line.clear()
        self._link = None  # a link over several lines stays without its target
        if line or self._code:
            self._lines.append(f"{self._before}{line}")
            self._before = ""
