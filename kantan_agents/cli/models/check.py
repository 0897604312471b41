"""``models check NAME``."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import attrs
import typer
from rich.text import Text

from kantan_agents.agent.running.portal import background_loop
from kantan_agents.cli.models.providers import KEY_HINT, REFUSED_KEY
from kantan_agents.cli.models.questions import Answer, Questions
from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, wide_terminal, working
from kantan_agents.cli.terminal.failures import EXIT_FAILED, describe
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.configuration import LOCAL_URLS
from kantan_agents.models.origin import ModelOrigin, origin_of
from kantan_agents.models.structured.requests.families import Family, family_of
from kantan_agents.support.secrets import mask

_COLUMNS: Final = (
    Column("question"),
    Column("result"),
    Column("seconds", right=True),
    Column("found", rest=True),
)
_WORDS: Final = {True: ("works", GOOD), False: ("fails", BAD), None: ("not asked", LABEL)}


@attrs.frozen
class _Row:
    question: str
    works: bool | None
    detail: str
    seconds: float | None = None


@attrs.frozen
class _Checked:
    """The findings about a model."""

    name: str
    origin: ModelOrigin
    rows: list[_Row]
    questions: Questions

    @property
    def family(self) -> Family:
        return family_of(self.origin.provider, self.origin.base_url)

    @property
    def works(self) -> bool:
        return all(row.works for row in self.rows)


def check_model(name: str, *, seconds: float, max_tokens: int, as_json: bool) -> None:
    """Test a model; exit with 1 if something does not work."""
    if not name.strip():  # such as "$MODEL" without the variable, which would match any model
        raise InvalidOptionError(option="NAME", reason="must not be empty")
    questions = Questions(name, max_tokens)
    questions.agent().check_model()
    with working(wide_terminal(stderr=True), "Asking the model ..."):
        checked = background_loop.run(lambda: _checked(questions, seconds))
    if as_json:
        typer.echo(json_text(_data(checked)))
    else:
        console = wide_terminal()
        print_lines(console, _lines(checked, line_width(console)))
    if not checked.works:
        raise typer.Exit(EXIT_FAILED)


async def _checked(questions: Questions, seconds: float) -> _Checked:
    origin = origin_of(questions.agent().sdk_agent.model)
    text, row = await _asked("text", questions.text, seconds, has_own_key=origin.provider in LOCAL_URLS)
    rows = [row]
    if text is None:
        rows += [_Row(name, None, "") for name in ("stream", "tool call", "JSON", "usage")]
        return _Checked(questions.model, origin, rows, questions)
    stream, row = await _asked("stream", questions.stream, seconds)
    rows.append(row)
    for name, ask in (("tool call", questions.tool_call), ("JSON", questions.json)):
        rows.append((await _asked(name, ask, seconds))[1])
    rows.append(_usage(text, stream))
    return _Checked(questions.model, origin, rows, questions)


async def _asked(
    name: str, ask: Callable[[], Awaitable[Answer]], seconds: float, *, has_own_key: bool = False
) -> tuple[Answer | None, _Row]:
    begun = time.monotonic()
    try:
        with anyio.fail_after(seconds):
            answer = await ask()
    except TimeoutError:
        detail = f"no answer within {seconds:g} s; a server that loads its model first needs more: --timeout"
        return None, _Row(name, works=False, detail=detail, seconds=time.monotonic() - begun)
    except Exception as error:  # noqa: BLE001 - any failure of one question leaves the others
        refuses_key = has_own_key and getattr(error, "status_code", None) in REFUSED_KEY
        detail = f"{mask(describe(error))}{f'; {KEY_HINT}' if refuses_key else ''}"
        return None, _Row(name, works=False, detail=detail, seconds=time.monotonic() - begun)
    return answer, _Row(name, answer.works, answer.detail, time.monotonic() - begun)


def _usage(text: Answer | None, stream: Answer | None) -> _Row:
    answers = {"text": text, "stream": stream}
    without = [name for name, answer in answers.items() if answer is not None and not answer.usage]
    if without:
        return _Row("usage", works=False, detail=f"no tokens are reported for: {', '.join(without)}")
    numbers = [answer.usage for answer in answers.values() if answer is not None]
    shown = (f"{one['input_tokens']} + {one['output_tokens']} tokens" for one in numbers)
    return _Row("usage", works=bool(numbers), detail="; ".join(shown))


def _lines(checked: _Checked, width: int | None) -> Iterator[Text]:
    api = "chat completions" if checked.origin.is_chat else "its own API"
    place = " ".join(part for part in (_place(checked.origin), f"({api})") if part)
    yield Text.assemble(cell(checked.name, ACCENT), ": ", cell(place, LABEL))
    rows = [
        [
            cell(row.question),
            cell(*_WORDS[row.works]),
            cell("" if row.seconds is None else f"{row.seconds:.1f}"),
            cell(row.detail if row.works else ""),
        ]
        for row in checked.rows
    ]
    yield from row_lines(_COLUMNS, rows, width)
    for row in checked.rows:
        if row.works is False:
            yield cell(f"{row.question}: {row.detail}", BAD)
    for line in _about_mode(checked):
        yield cell(line)


def _about_mode(checked: _Checked) -> Iterator[str]:
    attempts = checked.questions.attempts
    if not attempts:
        return
    family = checked.family
    if attempts[-1].fits:
        yield f"Output mode: {attempts[-1].mode}, {_reason(checked)}."
    else:
        yield "Output mode: none works."
    yield f"With tools: {_modes(family.forms_beside_tools)}, in this order (family {family.name})."


def _reason(checked: _Checked) -> str:
    *before, last = checked.questions.attempts
    before = [one for one in before if one.mode != last.mode]  # a correction is no reason for the mode
    if before:
        return "because " + "; ".join(mask(str(one)) for one in before)
    return f"the first of {_modes(checked.family.forms)} (family {checked.family.name})"


def _modes(forms: Any) -> str:
    return ", ".join(dict.fromkeys(form.mode for form in forms))


def _place(origin: ModelOrigin) -> str:
    """Return a model's URL without credentials."""
    parts = urlsplit(origin.base_url)
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
    return shown.rstrip("/") if parts.netloc else ""


def _data(checked: _Checked) -> dict[str, Any]:
    attempts = checked.questions.attempts
    fits = bool(attempts) and attempts[-1].fits
    return {
        "model": checked.name,
        "url": _place(checked.origin) or None,
        "works": checked.works,
        "questions": [attrs.asdict(row) for row in checked.rows],
        "family": checked.family.name,
        "output_mode": attempts[-1].mode if fits else None,
        "output_mode_reason": _reason(checked) if fits else None,
        "output_modes_with_tools": list(
            dict.fromkeys(form.mode for form in checked.family.forms_beside_tools)
        ),
    }
