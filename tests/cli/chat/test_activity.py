"""The line of status: what an answer waits for, with its seconds, without harm to what is written."""

from __future__ import annotations

import io
from datetime import datetime, timezone
from typing import Any

import anyio
import anyio.lowlevel
import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from kantan_agents.cli.chat.activity import Activity, ticking
from kantan_agents.cli.chat.answer_view import AnswerView
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.steps import StepLists
from kantan_agents.core.events import (
    ModelCallStarted,
    RetryScheduled,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)

BASE: dict[str, Any] = {
    "run_id": "r",
    "parent_run_id": None,
    "sequence": 1,
    "time": datetime.now(timezone.utc),
}


class Strict(pyte.Screen):
    """A terminal that does two things as xterm, and unlike pyte.

    A cursor that moves is no longer behind the last column, and a wide character does not fit into that one.
    """

    def draw(self, data: str) -> None:
        for character in data:
            if cell_len(character) > 1 and self.cursor.x == self.columns - 1:
                super().draw(" ")
            super().draw(character)

    def _settle(self) -> None:
        self.cursor.x = min(self.cursor.x, self.columns - 1)

    def index(self) -> None:
        self._settle()
        super().index()

    def cursor_up(self, count: int | None = None) -> None:
        self._settle()
        super().cursor_up(count)

    def save_cursor(self) -> None:
        self._settle()
        super().save_cursor()


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


class Seen:
    """A ``Screen``, and what a person sees of it.

    Attributes:
        screen: The screen.
    """

    def __init__(self, columns: int = 40, lines: int = 6) -> None:
        self._file = Tty()
        console = Console(
            file=self._file, width=columns, height=lines, force_terminal=True, color_system=None
        )
        self.screen = Screen(console)
        self._shown = Strict(columns, lines)
        self._stream = pyte.Stream(self._shown)

    @property
    def lines(self) -> list[str]:
        """The rows that are not empty."""
        written = self._file.getvalue().replace("\n", "\r\n")  # as the terminal's driver does
        self._file.seek(0)
        self._file.truncate()
        self._stream.feed(written)
        return [line.rstrip() for line in self._shown.display if line.strip()]

    @property
    def all_lines(self) -> list[str]:
        self.lines  # noqa: B018 - reads what was written
        return [line.rstrip() for line in self._shown.display]


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def retry(delay: float, status: int | None = 429) -> RetryScheduled:
    return RetryScheduled(
        call_id="m", agent="office", delay=delay, status=status, attempt=2, attempts=3, **BASE
    )


def started() -> ModelCallStarted:
    return ModelCallStarted(call_id="m", model="x", agent="office", **BASE)


@pytest.mark.parametrize(
    ("event", "seconds", "text"),
    [
        (started(), 0.9, "office is thinking ..."),
        (started(), 12.5, "office is thinking ... 12 s"),
        (started(), 125.5, "office is thinking ... 2 min 5 s"),
        (retry(11.5), 0, "office waits 12 s: 429, too many requests (try 2 of 3)"),
        (retry(11.5), 11, "office waits 1 s: 429, too many requests (try 2 of 3)"),
        (retry(11.5), 14, "office is thinking ... 2 s"),
        (retry(1, 529), 0, "office waits 1 s: 529 (try 2 of 3)"),
        (retry(2, None), 0, "office waits 2 s: the connection failed (try 2 of 3)"),
        ("a piece of text", 2.9, ""),
        ("a piece of text", 4.5, "office is thinking ... 4 s"),
    ],
)
def test_an_activity_says_for_how_long(
    event: Any, seconds: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("kantan_agents.cli.chat.activity.monotonic", lambda: clock[0])
    activity = Activity.writing("office") if isinstance(event, str) else Activity.of(event)
    clock[0] += seconds
    assert activity.text() == text


def test_a_status_is_below_a_text_which_goes_on_where_it_was() -> None:
    seen = Seen()
    seen.screen.stream("Once upon")
    seen.screen.status("office is thinking ... 3 s")
    assert seen.lines == ["Once upon", "office is thinking ... 3 s"]
    seen.screen.status("office is thinking ... 4 s")
    assert seen.lines == ["Once upon", "office is thinking ... 4 s"]
    seen.screen.stream(" a time")
    assert seen.lines == ["Once upon a time"]
    seen.screen.line("* look")
    assert seen.all_lines[:3] == ["Once upon a time", "* look", ""]


def test_at_the_margin_and_after_characters_of_unknown_width_there_is_no_status() -> None:
    for text in ("x" * 10, "x" * 20, "a\u0301", "\U0001f600", "\t"):
        seen = Seen(columns=10)
        seen.screen.stream(text)
        before = seen.all_lines
        seen.screen.status("thinking")
        assert seen.all_lines == before
        seen.screen.stream("\nnext")
        seen.screen.status("thinking")
        assert seen.lines[-2:] == ["next", "thinking"]


pieces = st.text(st.sampled_from("ab \n\u3042\u3000\u00e9\U0001f600\u0301\t"), min_size=1, max_size=15)
steps = st.lists(
    st.one_of(st.tuples(st.just("text"), pieces), st.tuples(st.just("status"), pieces)), max_size=12
)


@given(steps, st.integers(2, 12), st.integers(2, 5))
def test_no_status_changes_what_is_written(steps: list[tuple[str, str]], columns: int, lines: int) -> None:
    seen, plain = Seen(columns, lines), Seen(columns, 200)
    for kind, text in steps:
        if kind == "text":
            seen.screen.stream(text)
            plain.screen.stream(text)
        else:
            seen.screen.status(f"s{text}")
            assert seen.all_lines is not None
    seen.screen.end_answer()
    plain.screen.end_answer()
    written = [line for line in plain.all_lines if line]
    shown = seen.lines
    assert shown == written[len(written) - len(shown) :]


def test_the_view_shows_what_goes_on_now() -> None:
    seen = Seen()
    view = AnswerView(seen.screen, lambda *_: None, StepLists(()))
    view.show(ModelCallStarted(call_id="m", model="x", agent="office", **BASE), "r")
    assert seen.lines == ["office is thinking ..."]
    view.show(retry(9), "r")
    assert seen.lines[0].startswith("office waits 9 s: 429")
    view.show(TextDelta(call_id="m", text="Well,", agent="office", **BASE), "r")
    view.show_status()
    assert seen.lines == ["Well,"]
    for call in ("a", "b"):
        begun = ToolCallStarted(call_id=call, tool=f"tool_{call}", arguments="{}", agent="office", **BASE)
        view.show(begun, "r")
    assert seen.lines == ["Well,", "tool_a, tool_b ..."]
    for call in ("a", "b"):
        ended = ToolCallFinished(
            call_id=call,
            tool=f"tool_{call}",
            seconds=1.0,
            outcome="finished",
            output="",
            agent="office",
            **BASE,
        )
        view.show(ended, "r")
    view.show_status()
    assert seen.lines == ["Well,", "* tool_a 1.0 s", "* tool_b 1.0 s"]


async def test_time_is_shown_unless_somebody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kantan_agents.cli.chat.activity._INTERVAL", 0)
    screen, ticks = Seen().screen, anyio.Event()
    shown: list[bool] = []

    def show() -> None:
        shown.append(screen.lock.locked())
        ticks.set()

    async with ticking(screen, show):
        async with screen.lock:
            await _let_others_go_on()
        assert shown == []
        await ticks.wait()
    count = len(shown)
    await _let_others_go_on()
    assert len(shown) == count
    assert not any(shown)


async def _let_others_go_on() -> None:
    for _ in range(9):
        await anyio.lowlevel.checkpoint()


async def test_an_error_leaves_the_block_as_it_is() -> None:
    with pytest.raises(ValueError, match="this one"):
        async with ticking(Seen().screen, lambda: None):
            raise ValueError("this one")


@pytest.mark.parametrize("terminal", ["pipe", "dumb"])
async def test_nothing_ticks_without_a_status(terminal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    notes = Console(file=io.StringIO()) if terminal == "pipe" else None
    screen = Screen(Console(file=Tty(), force_terminal=True), notes=notes)
    before = anyio.get_running_tasks()
    async with ticking(screen, lambda: None):
        assert len(anyio.get_running_tasks()) == len(before)
