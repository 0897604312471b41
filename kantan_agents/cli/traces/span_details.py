"""Formats one span."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kantan_agents.cli.terminal.console import BAD, LABEL, plain
from kantan_agents.cli.terminal.plain import one_line, printable
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.cli.traces.span_tree import Block
from kantan_agents.cli.traces.view import span_head
from kantan_agents.traces.input_items import newest_item
from kantan_agents.traces.sdk_spans import is_sdk_span
from kantan_agents.traces.span_answers import read_answer

if TYPE_CHECKING:
    from kantan_llm.tracing import SpanRecord

_MAX_READABLE = 240
_LABEL_WIDTH = 8


def draw_span(*, full: bool) -> Callable[[SpanRecord], tuple[Text, Sequence[Block]]]:
    """Return a function that formats a span."""

    def draw(span: SpanRecord) -> tuple[Text, Sequence[Block]]:
        return _line(span), tuple(_blocks(span, full=full))

    return draw


def readable(text: str, style: str = "", *, full: bool) -> Text:
    """Return the whole ``text``, or its start and length."""
    if full:
        return plain(text.strip("\r\n"), style)
    beginning = " ".join(printable(" ".join(text[: 4 * _MAX_READABLE].split())).split())
    if len(beginning) <= _MAX_READABLE and len(text) <= 4 * _MAX_READABLE:
        return plain(beginning, style)
    shown = plain(beginning[:_MAX_READABLE].rstrip(), style)
    return Text.assemble(shown, (f" ... ({count_text(len(text))} characters)", LABEL))


def error_text(error: Any) -> str:
    """Return an error's message and data."""
    if not isinstance(error, Mapping):
        return text_of(error)
    message, data = text_of(error.get("message", "")), error.get("data")
    return f"{message} {text_of(data)}".strip() if data else message


def rubric_view(rubric: Mapping[str, Any], *, full: bool) -> Text:
    """Return a verdict's score and comments."""
    comments = rubric.get("comments")
    if not isinstance(comments, list) or not comments:
        comments = [rubric["comment"]] if rubric.get("comment") else []
    texts = [text_of(rubric.get("score")), *map(text_of, comments)]
    return Text("\n").join(readable(text, full=full) for text in texts)


def _line(span: SpanRecord) -> Text:
    data, usage = _span_data(span), span.usage if isinstance(span.usage, Mapping) else {}
    facts = [
        _arrow(data),
        "triggered" if data.get("triggered") is True else "",
        data.get("model") or "",
        counted(tokens, "token") if isinstance(tokens := usage.get("total_tokens"), int) and tokens else "",
    ]
    line = span_head(span, _name(span, data))
    for fact in filter(None, facts):
        line.append_text(plain(f"  {one_line(str(fact))}", LABEL))
    return line


def _blocks(span: SpanRecord, *, full: bool) -> Iterator[Block]:
    if span.error:
        yield _block("error", readable(error_text(span.error), BAD, full=full), BAD)
    if span.input:
        text = str(span.input) if full else newest_item(str(span.input))
        yield _block("in", readable(text, full=full))
    answer = read_answer(span)
    for call in answer.calls if answer is not None else ():
        yield _block("calls", readable(call, full=full))
    output = span.output if answer is None else answer.text
    # A verdict is also the output of its run: `out` would repeat it.
    if span.rubric and isinstance(span.rubric, Mapping):
        yield _block("rubric", rubric_view(span.rubric, full=full))
    elif output:
        yield _block("out", readable(str(output), full=full))
    data = _span_data(span)
    own = data.get("data")
    # The data of the SDK's spans repeats the line.
    if span.span_type == "custom" and own and not span.rubric and not is_sdk_span(span):
        yield _block("data", readable(text_of(own), full=full))


def _block(label: str, text: Text, style: str = LABEL) -> Block:
    return Block(Text(label.ljust(_LABEL_WIDTH), style=style), text)


def _span_data(span: SpanRecord) -> Mapping[str, Any]:
    raw = span.raw if isinstance(span.raw, Mapping) else {}
    data = raw.get("span_data")
    return data if isinstance(data, Mapping) else {}


def _name(span: SpanRecord, data: Mapping[str, Any]) -> str | None:
    # The SDK records the turn number next to the name.
    return f"{span.name} {data['data'].get('turn', '')}".rstrip() if is_sdk_span(span) else span.name


def _arrow(data: Mapping[str, Any]) -> str:
    source, target = data.get("from_agent"), data.get("to_agent")
    return f"{source} -> {target}" if source and target else ""


def text_of(value: Any) -> str:
    """Return a string unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
