"""Renders the sections of the demo."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text
from rich.tree import Tree

from kantan_agents.cli.terminal.console import (
    ACCENT,
    BAD,
    GOOD,
    LABEL,
    NOTICE,
    STRONG,
    indented,
    pairs,
    plain,
)
from kantan_agents.core.items import get
from kantan_agents.core.pipeline import Run, run_result
from kantan_agents.core.prompt import Prompt


def header(model: str | None, database: Path, *, temporary: bool) -> RenderableType:
    """Return the first section."""
    if model is None:
        answers = Text.assemble(
            ("The model is scripted.", NOTICE),
            " No provider is called and no key is needed: a small server on 127.0.0.1 gives "
            "prepared answers. The rest is real: the OpenAI client, HTTP, the SDK's runner, the "
            "traces and their database.",
        )
    else:
        answers = Text.assemble("The model is ", plain(model, STRONG), ", called at its provider.")
    where = "Traces go to a temporary file:" if temporary else "Traces go to your database:"
    return Panel(
        Group(answers, Text(), Text(where, style=LABEL), plain(database, LABEL)),
        title=Text("kantan_agents demo", style=f"bold {ACCENT}"),
        border_style=ACCENT,
        padding=(1, 2),
    )


def heading(number: int, title: str, explanation: str) -> RenderableType:
    """Return the heading of a section."""
    rule = Rule(Text(f"{number}  {title}", style=f"bold {ACCENT}"), align="left", style=ACCENT)
    return Group(Text(), rule, indented(Text(explanation, style=LABEL), Text()))


def prompt_view(prompt: Prompt, rendered: str) -> RenderableType:
    """Return a prompt as written and as sent."""
    meta = ", ".join(f"{key}: {value}" for key, value in (prompt.meta or {}).items())
    facts = [
        ("prompt", prompt.name),
        ("version", prompt.version),
        ("id", f"{prompt.resolve_id()[:16]}... (SHA-256 of the text)"),
        ("meta", meta),
    ]
    template = plain(prompt.text)
    template.highlight_regex(r"\{\{.*?\}\}", f"bold {ACCENT}")
    return indented(
        pairs(facts), Text(), _titled("as written", template), _titled("as sent", plain(rendered))
    )


def run_view(run: Run) -> RenderableType:
    """Return the course of a run."""
    tree = Tree(plain(f"agent {run.agent.name}", f"bold {ACCENT}"), guide_style=LABEL)
    tree.add(_step("asked", run.input, STRONG))
    items = run_result(run.context).new_items
    if not any(item.type == "tool_call_item" for item in items):
        tree.add(plain("The model has not called the tool.", NOTICE))
    for item in items:
        raw = item.raw_item
        if item.type == "tool_call_item":
            call = f"{_field(raw, 'name') or _field(raw, 'type')}({_field(raw, 'arguments')})"
            tree.add(_step("calls", call, STRONG))
        elif item.type == "tool_call_output_item":
            tree.add(_step("gets", item.output))
        elif item.type == "message_output_item":
            tree.add(_step("answers", _message_text(raw)))
    return indented(tree)


def context_view(context: Mapping[str, Any], output_dest: str) -> RenderableType:
    """Return the context after a run."""
    answer = context.get(output_dest) or {}
    history = context.get("history") or ()
    return indented(
        Text(f'context["{output_dest}"]', style=STRONG),
        _under(pairs(((key, _text(value)) for key, value in answer.items()), ACCENT)),
        Text(),
        Text('context["history"]', style=STRONG),
        _under(pairs(((entry.get("role"), entry.get("text")) for entry in history), ACCENT)),
    )


def verdict_view(rubric: Mapping[str, Any], pass_mark: float) -> RenderableType:
    """Return a rubric's score and comments."""
    score = rubric.get("score")
    passed = isinstance(score, (int, float)) and pass_mark <= score <= 1
    outcome = f"{'passed' if passed else 'failed'}, the pass mark is {pass_mark}"
    if isinstance(score, (int, float)) and not 0 <= score <= 1:
        outcome = "neither passed nor failed: it is not from 0.0 to 1.0"
    line = Text.assemble(("score  ", LABEL), (f"{score}", GOOD if passed else BAD), (f"  {outcome}", LABEL))
    comments = [("-", comment) for comment in rubric.get("comments") or ()]
    return indented(line, pairs(comments))


def query_view(query: str) -> RenderableType:
    """Return the heading of a call."""
    return indented(Text(query, style=f"bold {ACCENT}"))


def unfinished(model: str | None, database: Path, *, kept: bool) -> RenderableType:
    """Return advice after a failed run."""
    look = f"kantan-agents traces list --db {shlex.quote(str(database))}"
    check = f"kantan-agents models check {shlex.quote(model or '')}"
    return Group(
        Text(),
        Rule(style=BAD),
        indented(Text("The demo ends here, because a run has failed.", style=NOTICE)),
        *([_hint("See what was recorded:", look)] if kept else []),
        *([_hint("See what this model can do:", check)] if model is not None else []),
    )


def footer(database: Path, *, kept: bool, requests: int | None) -> RenderableType:
    """Return the last section."""
    sent = f"{requests} HTTP requests were sent, all of them to 127.0.0.1."
    outcome = "The traces are in" if kept else "Deleted, as neither --db nor --keep was given:"
    return Group(
        Text(),
        Rule(style=ACCENT),
        *([] if requests is None else [indented(Text(sent, style=LABEL))]),
        indented(Text(outcome, style=LABEL), plain(database, LABEL), Text()),
        *([_look(database)] if kept else []),
        indented(
            Text("The same with a real model and your own database:"),
            Text("kantan-agents demo --model gpt-6.1-terra --db traces.sqlite3", style=f"bold {ACCENT}"),
        ),
        Text(),
    )


def _look(database: Path) -> RenderableType:
    command = f"kantan-agents traces show LAST --db {shlex.quote(str(database))}"
    return _hint("Look at what happened in the newest run:", command)


def _hint(words: str, command: str) -> RenderableType:
    return indented(Text(words), plain(command, f"bold {ACCENT}"), Text())


def _titled(title: str, content: Text) -> Panel:
    return Panel(content, title=Text(title), title_align="left", border_style=LABEL)


def _under(content: RenderableType) -> RenderableType:
    return Padding(content, (0, 0, 0, 2), expand=False)


def _step(label: str, value: object, style: str = "") -> RenderableType:
    return pairs([(f"{label:<7}", plain(value, style))])


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _field(item: Any, name: str) -> Any:
    # The SDK's items are objects or, from some models, dicts.
    value = get(item, name)
    return "" if value is None else value


def _message_text(message: Any) -> str:
    parts = _field(message, "content") or ()
    return "".join(str(_field(part, "text") or _field(part, "refusal")) for part in parts)
