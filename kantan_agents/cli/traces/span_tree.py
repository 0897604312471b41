"""Shows spans as a tree of any depth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kantan_agents.cli.terminal.console import LABEL
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.traces.sdk_spans import without_sdk_spans

if TYPE_CHECKING:
    from kantan_llm.tracing import SpanRecord

_NARROWEST_TEXT = 30
_GUIDE_WIDTH = 3


@attrs.frozen
class Guides:
    """The tree's lines, each three columns wide."""

    branch: str = "├─ "
    last: str = "└─ "
    through: str = "│  "
    nothing: str = "   "


ASCII_GUIDES = Guides("+- ", "`- ", "|  ")


@attrs.frozen
class Block:
    """A labeled text below a span."""

    label: Text
    text: Text


Draw = Callable[["SpanRecord"], tuple[Text, Sequence[Block]]]


@attrs.frozen
class SpanTree:
    """A title, and below it a trace's spans, in any order."""

    title: Text
    spans: Sequence[SpanRecord]
    draw: Draw
    sdk_spans: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines, none wider than the console."""
        guides = ASCII_GUIDES if options.ascii_only else Guides()
        yield from wrapped(console, self.title, options.max_width)
        spans = self.spans if self.sdk_spans else without_sdk_spans(self.spans)
        yield from tree_lines(console, spans, self.draw, width=options.max_width, guides=guides)


def tree_lines(
    console: Console,
    spans: Sequence[SpanRecord],
    draw: Draw,
    *,
    width: int | None,
    guides: Guides,
    depth: int | None = None,
) -> Iterator[Text]:
    """Yield the lines of a tree; without ``width``, lines are not wrapped.

    In a deep trace, the outermost guides may be cut. Spans below ``depth`` are counted.
    """
    guide_width = None if width is None else max(width - _NARROWEST_TEXT, 0) // 3 * 3
    kept, hidden = _cut_off(spans, depth)
    for span, above, is_last, has_children in _in_order(kept, guides):
        head, blocks = draw(span)
        first = above + (guides.last if is_last else guides.branch)
        below = above + (guides.nothing if is_last else guides.through)
        inner = below + (guides.through if has_children else guides.nothing)
        yield from hanging(
            console,
            Text(_clipped(first, guide_width), LABEL),
            Text(_clipped(below, guide_width), LABEL),
            head,
            width,
        )
        for block in blocks:
            guide = _clipped(inner, guide_width)
            label = Text.assemble((guide, LABEL), block.label)
            space = Text(guide + " " * block.label.cell_len, LABEL)
            yield from hanging(console, label, space, block.text, width)
        if count := hidden.get(span.span_id):
            label = Text(_clipped(inner, guide_width), LABEL)
            yield from hanging(console, label, label, Text(f"{counted(count, 'span')} below", LABEL), width)


def wrapped(console: Console, text: Text, width: int | None) -> Iterable[Text]:
    """Return ``text`` in lines."""
    if width is None:
        return text.split(allow_blank=True)
    return text.wrap(console, max(width, 1), overflow="fold")


def hanging(console: Console, first: Text, rest: Text, text: Text, width: int | None) -> Iterator[Text]:
    """Yield lines after ``first`` or ``rest``."""
    space = None if width is None else max(width - first.cell_len, 1)
    before = first
    for line in wrapped(console, text, space):
        whole = Text.assemble(before, line)
        whole.rstrip()
        yield whole
        before = rest


def _cut_off(spans: Sequence[SpanRecord], depth: int | None) -> tuple[Sequence[SpanRecord], dict[str, int]]:
    if depth is None:
        return spans, {}
    kept, hidden = [], Counter[str]()
    path: list[str] = []
    for span, above, _, _ in _in_order(spans, Guides()):
        level = len(above) // _GUIDE_WIDTH
        path[level:] = [span.span_id]
        if level < depth:
            kept.append(span)
        else:
            hidden[path[depth - 1]] += 1
    return kept, hidden


def _clipped(guides: str, width: int | None) -> str:
    return guides if width is None or len(guides) <= width else guides[len(guides) - width :]


def _in_order(spans: Iterable[SpanRecord], guides: Guides) -> Iterator[tuple[SpanRecord, str, bool, bool]]:
    waiting = sorted(spans, key=_started)
    known = {span.span_id for span in waiting}
    children: dict[str | None, list[SpanRecord]] = defaultdict(list)
    for span in waiting:
        children[span.parent_id if span.parent_id in known else None].append(span)
    seen: set[str] = set()
    roots = children.pop(None, [])
    while waiting:
        stack = [(span, "", span is roots[-1]) for span in reversed(roots)]
        while stack:
            span, above, is_last = stack.pop()
            if span.span_id in seen:
                continue
            seen.add(span.span_id)
            below = children[span.span_id]
            yield span, above, is_last, bool(below)
            inner = above + (guides.nothing if is_last else guides.through)
            stack += [(child, inner, child is below[-1]) for child in reversed(below)]
        # The remaining spans form cycles, which only a damaged database has. Show them too.
        waiting = [span for span in waiting if span.span_id not in seen]
        roots = waiting[:1]


def _started(span: SpanRecord) -> tuple[bool, str, int]:
    return span.started_at is None, str(span.started_at), span.ingest_seq
