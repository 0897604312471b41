"""The parts of ``traces show`` on demand: instructions, settings, tools, and decisions of the rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, LABEL, NOTICE, plain
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import cell
from kantan_agents.cli.terminal.show_quantities import duration_text
from kantan_agents.cli.traces.span_details import readable, text_of
from kantan_agents.cli.traces.span_tree import hanging

if TYPE_CHECKING:
    from kantan_agents.traces.capture import ModelCallRecord, RunRecord, ToolCallRecord, ToolDefinition
    from kantan_agents.traces.store import StoredTrace

_INDENT = "  "
_LABEL_WIDTH = 14

_Entry = tuple[str, Text]
"""A label and its text; below a call, each on its own lines."""


class RequestLines:
    """Lays out what was sent to the models of a trace.

    Args:
        console: Where it is printed.
        width: The maximum length of a line; None in a pipe.
        instructions: Whether to show instructions and model settings.
        tools: Whether to show tools, and the decisions about their calls.
        full: Whether to show complete schemas and arguments.
    """

    def __init__(
        self, console: Console, width: int | None, *, instructions: bool, tools: bool, full: bool
    ) -> None:
        self._console = console
        self._width = width
        self._instructions = instructions
        self._tools = tools
        self._full = full

    def of(self, trace: StoredTrace) -> Iterator[Text]:
        """Yield the lines, each run below a heading if there are several."""
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
            yield from self._hanging(Text(), _heading(f"model call {number}", _facts(call)))
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


def _facts(call: ModelCallRecord) -> list[str]:
    model = f"{call.provider}/{call.model}" if call.provider else call.model
    api = call.api if call.api != "other" else ""
    marks = ["streamed"] * call.is_streamed + ["by a middleware"] * call.is_internal
    marks += ["from the cache"] * call.from_cache + ["another request was faster"] * call.is_superseded
    failed = [f"failed: {call.error.message}"] if call.error is not None else []
    return [call.agent, model, api, _took(call), *marks, *failed]


def _took(call: ModelCallRecord | ToolCallRecord) -> str:
    return duration_text(call.seconds)


def _repeated(content: str, shown: dict[str, int], number: int) -> Text | None:
    """Return a reference to the call that was shown with the same content; None for new content."""
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
    verdict = "allowed" if decision.is_allowed else f"refused {decision.code or ''}".rstrip()
    return _plain_line(f"{verdict}: {rule}{layers}", "" if decision.is_allowed else BAD)


def _json(data: Mapping[str, Any], *, full: bool) -> Text:
    if full:
        return plain(json.dumps(data, ensure_ascii=False, indent=2, default=str), LABEL)
    return readable(json.dumps(data, ensure_ascii=False, default=str), LABEL, full=False)


def _plain_line(text: str, style: str = "") -> Text:
    return plain(one_line(text), style)
