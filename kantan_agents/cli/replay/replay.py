"""Replays recordings, and prints how each differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import typer
from agents import set_trace_processors
from rich.console import Console

from kantan_agents.agent import Agent
from kantan_agents.cli.replay.load_agent import load_agent
from kantan_agents.cli.terminal.console import BAD, GOOD, LABEL, NOTICE, plain, terminal, working
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_USAGE, describe, exit_code
from kantan_agents.cli.terminal.plain import json_text, one_line, printable
from kantan_agents.errors import ReplayDifferenceError, UnknownRecordedToolError
from kantan_agents.lab.replay import Recording, record_again, replay
from kantan_agents.lab.replay.checks import Checks

_MOST_LINES = 20
_STYLES = {"same": GOOD, "updated": NOTICE, "different": BAD, "failed": BAD, "refused": BAD}


@attrs.frozen
class ReplayOptions:
    """Options of ``replay`` for all recordings."""

    ignore: Sequence[str]
    match: Sequence[str] | None
    accept: Sequence[str]


@attrs.frozen
class Result:
    """The result of replaying one recording.

    ``"updated"`` was different and is recorded again, ``"failed"`` has an error of the agent's, ``"refused"``
    cannot be replayed.
    """

    path: Path
    outcome: Literal["same", "different", "updated", "failed", "refused"]
    error: Exception | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        data: dict[str, Any] = {"recording": str(self.path), "outcome": self.outcome}
        if isinstance(self.error, ReplayDifferenceError):
            data["place"] = self.error.place
            data["differences"] = [attrs.asdict(one) for one in self.error.differences]
        elif self.error is not None:
            data["error"] = describe(self.error)
        return data


def replay_recordings(
    paths: Sequence[Path],
    agent_name: str,
    options: ReplayOptions,
    *,
    update: bool,
    as_json: bool,
) -> None:
    """Replay recordings; exit with 1 if one differed or failed, 2 if one was impossible."""
    Checks.of(options.ignore, options.match)
    set_trace_processors([])  # the SDK's exporter would send the runs of --update to OpenAI
    agent = load_agent(agent_name)
    console = terminal()
    results = []
    for path in paths:
        with working(console, f"Replaying {one_line(str(path))}"):
            results.append(_replay(path, agent, options, update=update))
        if not as_json:
            _show(console, results[-1])
    if as_json:
        typer.echo(json_text([one.to_dict() for one in results], default=list))
    elif len(results) > 1:
        counts = Counter(one.outcome for one in results)
        console.print(plain(", ".join(f"{count} {outcome}" for outcome, count in counts.items()), LABEL))
    outcomes = {one.outcome for one in results}
    if "refused" in outcomes:
        raise typer.Exit(EXIT_USAGE)
    if outcomes & {"different", "failed"}:
        raise typer.Exit(EXIT_FAILED)


def _replay(path: Path, agent: Agent[Any], options: ReplayOptions, *, update: bool) -> Result:
    try:
        recording = Recording.load(path)
        replay(recording, agent, **attrs.asdict(options, recurse=False))
    except (ReplayDifferenceError, UnknownRecordedToolError) as error:
        return _record_again(path, recording, agent, error) if update else Result(path, "different", error)
    except Exception as error:  # noqa: BLE001 - even errors in the agent's code; the next one is replayed
        return Result(path, "refused" if exit_code(error) == EXIT_USAGE else "failed", error)
    return Result(path, "same")


def _record_again(path: Path, recording: Recording, agent: Agent[Any], difference: Exception) -> Result:
    try:
        record_again(recording, agent).save(path)
    except Exception as error:  # noqa: BLE001 - the real run failed: the file is unchanged
        return Result(path, "failed", error)
    return Result(path, "updated", difference)


def _show(console: Console, result: Result) -> None:
    line = plain(f"{result.outcome:<9} ", _STYLES[result.outcome])
    line.append(one_line(str(result.path)))
    console.print(line)
    error = result.error
    if isinstance(error, ReplayDifferenceError):
        console.print(plain(f"  {one_line(f'{error.place}: {error.part}')}"))
        lines = printable(error.diff).splitlines()
        for shown in lines[:_MOST_LINES]:
            style = {"-": "red", "+": "green"}.get(shown[:1], LABEL)
            console.print(plain(f"    {shown}", style))
        if len(lines) > _MOST_LINES:
            console.print(plain(f"    ... {len(lines) - _MOST_LINES} more lines", LABEL))
    elif error is not None:
        console.print(plain(f"  {describe(error)}"))
