"""Draws the picture of a terminal in README.md: ``python docs/draw_terminal.py``.

It records a run of the README's program against an ``OfflineServer`` and draws the output of
``kantan-agents traces show LAST``. Ids, times and durations are replaced by fixed ones, so that drawing the picture
again changes nothing. ``tests/docs/test_draw_terminal.py`` tests that.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from rich.text import Text

sys.path[:0] = [str(Path(__file__).parent)]

from terminal_svg import svg_of  # noqa: E402

from kantan_agents import Agent, Prompt, SQLiteRecorder, set_trace_processors  # noqa: E402
from kantan_agents.cli.app import app  # noqa: E402
from kantan_agents.testing import OfflineServer, ScriptedToolCall  # noqa: E402

PICTURE = Path(__file__).parent / "assets" / "traces-show.svg"
COMMAND = "kantan-agents traces show LAST"
COLUMNS = 86

_TERMINAL = {
    "COLUMNS": str(COLUMNS),
    "FORCE_COLOR": "1",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
}
_RUN_ID = "0199f2a46c1e7d0b8a5e3f9c2d7b4e61"
_STARTED = "2026-11-20 09:30:00"
# In the order in which the command shows them: the run, then its spans from the first to the last.
_DURATIONS = (
    "1.6 s",
    "1.6 s",
    "904 ms",
    "12 ms",
    "652 ms",
    "0 ms",
)


def picture() -> str:
    """Return the picture as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "traces.sqlite3"
        record_run(database)
        shown = normalised(output_of(database))
    return svg_of(Text.from_ansi(shown), title=COMMAND, columns=COLUMNS)


def record_run(database: Path) -> None:
    """Record a run of the README's agent."""

    def get_weather(city: str) -> str:
        """Return the weather in a city."""
        return f"{city}: sunny, 21 degrees"

    recorder = SQLiteRecorder(database)
    set_trace_processors([recorder])
    script = [
        ScriptedToolCall("get_weather", {"city": "Oslo"}),
        "It is sunny in Oslo, Aiko: 21 degrees.",
    ]
    with OfflineServer(script) as server:
        agent = Agent(
            "weather",
            Prompt(
                "weather",
                "v2",
                "Answer in one sentence. The user is {{ $ctx.user.name }}.",
            ),
            model=server.bundle("gpt-6.1-terra"),
            tools=[get_weather],
            tool_providers=None,
        )
        agent.run("How is it in Oslo?", {"user": {"name": "Aiko"}})
    set_trace_processors([])
    recorder.shutdown()


def output_of(database: Path) -> str:
    """Return the output of the command on a terminal, with colours."""
    with terminal(), redirect_stdout(io.StringIO()) as printed:
        app([*COMMAND.split()[1:], "--db", str(database)], standalone_mode=False)
    return printed.getvalue()


@contextmanager
def terminal() -> Iterator[None]:
    """Make rich write as on a terminal of the picture's width."""
    before = dict(os.environ)
    os.environ.update(_TERMINAL)
    os.environ.pop("NO_COLOR", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def normalised(shown: str) -> str:
    """Return ``shown`` with fixed ids, times and durations.

    Raises:
        ValueError: The number of durations differs from the number of fixed ones.
    """
    # The first two are the ids of the trace and the run; the hash of the prompt is longer.
    shown = re.sub(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", _RUN_ID, shown)
    shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", _STARTED, shown)
    durations = iter(_DURATIONS)
    pieces = re.split(r"((?<![\d.])\d+(?:\.\d+)? (?:ms|s)\b)", shown)
    found = pieces[1::2]
    if len(found) != len(_DURATIONS):
        raise ValueError(f"expected {len(_DURATIONS)} durations, found {found}")
    pieces[1::2] = durations
    return "".join(pieces)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE)
