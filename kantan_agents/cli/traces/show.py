"""``traces show``: one run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, LABEL, NOTICE, plain, terminal
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import cell, line_width, print_lines
from kantan_agents.cli.terminal.show_quantities import count_text, duration_text, local_time
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import status, trace_data
from kantan_agents.cli.traces.span_details import draw_span, readable, rubric_view, text_of
from kantan_agents.cli.traces.span_tree import ASCII_GUIDES, Guides, hanging, tree_lines
from kantan_agents.cli.traces.view import prompt_label
from kantan_agents.traces.input_items import question_in
from kantan_agents.traces.sdk_spans import without_sdk_spans

if TYPE_CHECKING:
    from kantan_agents.traces.capture import ModelCallRecord, RunRecord, ToolCallRecord, ToolDefinition
    from kantan_agents.traces.store import StoredTrace, TraceSummary

_GAP = 2
# Metadata with separate lines above the rest.
_OWN_LINES = ("agent_name", "prompt_name", "prompt_version", "agent_run_id", "usage_total")

_INDENT = "  "
_LABEL_WIDTH = 14

_Entry = tuple[str, Text]
"""A label and its text; below a call, each on separate lines."""


@attrs.frozen
class TraceView:
    """The parts to show; ``depth`` None means all."""

    full: bool = False
    depth: int | None = None
    sdk_spans: bool = False
    instructions: bool = False
    tools: bool = False


def show_trace(path: Path, trace_id: str, view: TraceView, *, as_json: bool) -> None:
    """Print a run."""
    trace = open_store(path).trace(trace_id)
    if as_json:
        typer.echo(json_text(trace_data(trace), default=str))
        return
    console = terminal()
    print_lines(console, _lines(console, trace, view))


def _lines(console: Console, trace: StoredTrace, view: TraceView) -> Iterator[Text]:
    width = line_width(console)
    facts = [(label, text) for label, text in _facts(trace.summary, full=view.full) if text.plain]
    width_of_labels = max(Text(label).cell_len for label, _ in facts) + _GAP
    for label, text in facts:
        first = plain(label, LABEL)
        first.append(" " * (width_of_labels - first.cell_len))
        yield from hanging(console, first, Text(" " * width_of_labels), text, width)
    if trace.spans:
        yield Text()
        guides = ASCII_GUIDES if console.options.ascii_only else Guides()
        spans = trace.spans if view.sdk_spans else without_sdk_spans(trace.spans)
        draw = draw_span(full=view.full)
        yield from tree_lines(console, spans, draw, width=width, guides=guides, depth=view.depth)
    if view.instructions or view.tools:
        requests = RequestLines(
            console, width, instructions=view.instructions, tools=view.tools, full=view.full
        )
        yield from requests.of(trace)


def _facts(trace: TraceSummary, *, full: bool) -> Iterator[tuple[str, Text]]:
    metadata: Mapping[str, Any] = trace.metadata or {}
    yield "trace", plain(one_line(trace.trace_id), ACCENT)
    yield "status", status(trace)
    yield "started", plain(local_time(trace.started_at))
    yield "took", plain(duration_text(trace.duration))
    yield "workflow", plain(one_line(str(trace.workflow_name or "")))
    yield "group", plain(one_line(str(trace.group_id or "")))
    yield "agent", plain(one_line(str(metadata.get("agent_name") or "")))
    yield "prompt", plain(one_line(prompt_label(metadata)))
    yield "run", plain(one_line(str(metadata.get("agent_run_id") or "")))
    yield "tokens", plain(_tokens(trace))
    for number, (key, value) in enumerate((key, metadata[key]) for key in metadata if key not in _OWN_LINES):
        entry = Text.assemble(cell(key, LABEL), "  ", readable(text_of(value), full=full))
        yield "" if number else "metadata", entry
    text = str(trace.input or "")
    yield "input", readable(text if full else question_in(text), full=full)
    if trace.rubric is None:
        yield "output", readable(str(trace.output or ""), full=full)
    else:
        yield "rubric", rubric_view(trace.rubric, full=full)


def _tokens(trace: TraceSummary) -> str:
    if not trace.total_tokens:
        return ""
    parts = f"{count_text(trace.input_tokens)} in, {count_text(trace.output_tokens)} out"
    return f"{count_text(trace.total_tokens)} ({parts})"


class RequestLines:
    """Lays out the model requests of a trace."""

    def __init__(
        self, console: Console, width: int | None, *, instructions: bool, tools: bool, full: bool
    ) -> None:
        self._console = console
        self._width = width
        self._instructions = instructions
        self._tools = tools
        self._full = full

    def of(self, trace: StoredTrace) -> Iterator[Text]:
        """Yield the lines, with headings for several runs."""
        for reason in trace.missing:
            yield Text()
            yield from self._hanging(plain("not recorded  ", NOTICE), plain(one_line(reason)))
        for run in trace.runs:
            if len(trace.runs) > 1:
                yield Text()
                yield from self._hanging(Text(), _heading(f"run {run.id}", [run.agent]))
            yield from self._run(run)

    def _run(self, run: RunRecord) -> Iterator[Text]:
        shown: dict[str, int] = {}
        for number, call in enumerate(run.model_calls, 1):
            yield Text()
            yield from self._hanging(Text(), _heading(f"model call {number}", _call_facts(call)))
            for label, text in self._of_request(call, shown, number):
                yield from self._entry(label, text)
        for tool_call in run.tool_calls if self._tools else ():
            yield Text()
            facts = [tool_call.tool.name, tool_call.agent, _took(tool_call)]
            yield from self._hanging(Text(), _heading("tool call", facts))
            for label, text in self._of_tool_call(tool_call):
                yield from self._entry(label, text)

    def _of_request(self, call: ModelCallRecord, shown: dict[str, int], number: int) -> Iterator[_Entry]:
        request = call.request
        if self._instructions:
            for key, value in {**request.settings, **request.options}.items():
                yield key, readable(text_of(value), full=self._full)
            if request.output is not None:
                yield "output", _plain_line(f"{request.output.name}, {request.output.mode}")
            text = request.instructions or ""
            yield (
                "instructions",
                _repeated(f"i{text}", shown, number)
                or (plain(text.strip("\r\n")) if text else Text("none", style=LABEL)),
            )
        if self._tools:
            offered = [*request.tools, *request.handoffs]
            repeated = _repeated(f"t{offered}", shown, number)
            if repeated is not None or not offered:
                yield "tools", repeated or Text("none", style=LABEL)
                return
            for tool in offered:
                yield from self._of_tool(tool)

    def _of_tool(self, tool: ToolDefinition) -> Iterator[_Entry]:
        kind = "tool" if tool.kind == "function" else tool.kind
        yield kind, Text.assemble(cell(tool.name, ACCENT), (_origin(tool), LABEL))
        if tool.description:
            yield "", plain(tool.description.strip("\r\n"))
        if tool.parameters is not None:
            yield "", _json(tool.parameters, full=self._full)
        if tool.options:
            yield "", _json(tool.options, full=self._full)

    def _of_tool_call(self, call: ToolCallRecord) -> Iterator[_Entry]:
        yield "arguments", readable(call.arguments, full=self._full)
        yield "rules", _decision(call)
        if call.error is not None:
            yield "error", readable(f"{call.error.type}: {call.error.message}", BAD, full=self._full)
        elif call.output is not None:
            yield "result", readable(text_of(call.output), full=self._full)

    def _entry(self, label: str, text: Text) -> Iterator[Text]:
        first = Text.assemble(_INDENT, cell(label, LABEL, longest=2 * _LABEL_WIDTH))
        first.append(" " * max(_LABEL_WIDTH - first.cell_len + len(_INDENT), 2))
        yield from self._hanging(first, text, below=_LABEL_WIDTH + len(_INDENT))

    def _hanging(self, first: Text, text: Text, below: int | None = None) -> Iterator[Text]:
        rest = Text(" " * (first.cell_len if below is None else below))
        if first.cell_len > rest.cell_len:
            yield first
            first = rest
        yield from hanging(self._console, first, rest, text, self._width)


def _heading(what: str, facts: Sequence[str]) -> Text:
    line = plain(what, ACCENT)
    for fact in filter(None, facts):
        line.append_text(plain(f"  {one_line(fact)}", LABEL))
    return line


def _call_facts(call: ModelCallRecord) -> list[str]:
    model = f"{call.provider}/{call.model}" if call.provider else call.model
    api = call.api if call.api != "other" else ""
    marks = ["streamed"] * call.is_streamed + ["by a middleware"] * call.is_internal
    marks += ["from the cache"] * call.from_cache + ["another request was faster"] * call.is_superseded
    failed = [f"failed: {call.error.message}"] if call.error is not None else []
    return [call.agent, model, api, _took(call), *marks, *failed]


def _took(call: ModelCallRecord | ToolCallRecord) -> str:
    return duration_text(call.seconds)


def _repeated(content: str, shown: dict[str, int], number: int) -> Text | None:
    first = shown.setdefault(content, number)
    return None if first == number else Text(f"as in model call {first}", style=LABEL)


def _origin(tool: ToolDefinition) -> str:
    facts = [f"{tool.name_on_server} of server {tool.server}"] if tool.server else []
    facts += ["strict"] if tool.is_strict else []
    return f"  {one_line(', '.join(facts))}" if facts else ""


def _decision(call: ToolCallRecord) -> Text:
    decision = call.decision
    if decision is None:
        return Text("not asked", style=LABEL)
    rule = decision.rule or "no rule is about this tool"
    layers = f" in {' and '.join(decision.layers)}" if decision.layers else ""
    verdict = "allowed" if decision.is_allowed else f"denied {decision.code or ''}".rstrip()
    return _plain_line(f"{verdict}: {rule}{layers}", "" if decision.is_allowed else BAD)


def _json(data: Mapping[str, Any], *, full: bool) -> Text:
    if full:
        return plain(json.dumps(data, ensure_ascii=False, indent=2, default=str), LABEL)
    return readable(json.dumps(data, ensure_ascii=False, default=str), LABEL, full=False)


def _plain_line(text: str, style: str = "") -> Text:
    return plain(one_line(text), style)
