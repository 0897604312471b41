"""The pytest plugin.

pytest imports this module in every session, so it imports the library only when the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

if TYPE_CHECKING:
    from kantan_agents.agent import Agent
    from kantan_agents.lab.replay import Recording, Replay

UPDATE = "--update-recordings"
PASS_RATE = "kantan_agents_pass_rate"  # noqa: S105 - not a secret


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    group = parser.getgroup("kantan_agents")
    group.addoption(
        UPDATE,
        action="store_true",
        default=False,
        help="Where a replay by `replayed` differs, run the agent for real and save the new recording.",
    )


@attrs.frozen
class Replayed:
    """Replays recordings in a test; the fixture ``replayed`` is one.

    Attributes:
        root: The directory that paths of recordings are relative to.
        updates: Whether a recording that differs is recorded again.
        report: Called with a line about each recording that was replaced.
    """

    root: Path
    updates: bool
    report: Callable[[str], None]

    def __call__(
        self,
        recording: str | Path | Recording,
        agent: Agent[Any],
        *,
        ignore: str | Iterable[str] = (),
        match: str | Iterable[str] | None = None,
        accept: str | Iterable[str] = (),
        context: Mapping[str, Any] | None = None,
        **runner_options: Any,
    ) -> Replay:
        """Replay a recording with an agent; the test fails if a request, the answer or the error differs.

        With ``--update-recordings``, a recording that differs is not a failure: the agent runs for real with
        the recorded input, and the new recording replaces the file.

        Args:
            recording: Path of the file, relative to pytest's root directory, or a recording.
            agent: The current agent.
            ignore: Parts that may differ, as for ``replay``.
            match: The only parts that must be the same, as for ``replay``.
            accept: Provider-side actions and data that are used as recorded, as for ``replay``.
            context: Values for the context, as for ``replay``.
            **runner_options: For ``run_async``.

        Raises:
            ReplayDifferenceError: E92, a part differs.
            RecordingFileError: E91, the file is not a recording.
            NotReplayableError: E93, the run cannot be replayed.

        Returns:
            The replayed run.
        """
        from kantan_agents.errors import ReplayDifferenceError, UnknownRecordedToolError
        from kantan_agents.lab.replay import Recording, record_again, replay

        path = None if isinstance(recording, Recording) else self.root / recording
        given = recording if isinstance(recording, Recording) else Recording.load(self.root / recording)
        checks: dict[str, Any] = {"ignore": ignore, "match": match, "accept": accept, "context": context}
        try:
            return replay(given, agent, **checks, **runner_options)
        except (ReplayDifferenceError, UnknownRecordedToolError):
            if not self.updates or path is None:
                raise
        again = record_again(given, agent, context=context, **runner_options)
        again.save(path)
        self.report(f"recorded again: {path}")
        return replay(again, agent, **checks, **runner_options)


@pytest.fixture
def replayed(pytestconfig: pytest.Config) -> Replayed:
    """Replay a recorded run: ``replayed("tests/refund.json", agent)``."""
    terminal: Any = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    report = (lambda _: None) if terminal is None else terminal.write_line
    return Replayed(pytestconfig.rootpath, bool(pytestconfig.getoption(UPDATE)), report)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """pytest-xdist sends pass rates with the reports."""
    lines = [
        f"{report.nodeid}: {value}"
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == PASS_RATE
    ]
    if lines:
        terminalreporter.section("pass rates")
        for line in sorted(lines):
            terminalreporter.write_line(line)
