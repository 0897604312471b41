"""Calls that cannot be meant: how a model is helped, and when a run that gets nowhere ends."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import attrs
from rapidfuzz import fuzz, process

from kantan_agents.errors import ToolInputError
from kantan_agents.pipeline import Run, current_run

MISTAKEN_TURNS: Final = 5
"""After so many turns in a row, in which a model only calls what does not exist or gives no arguments that
could be read, the run ends."""

NAMES_TOLD: Final = 20
"""How many names of tools a model is told at the most."""

_LONGEST: Final = 200
_MISTAKES = object()


@attrs.define
class _Mistakes:
    """What a model has got wrong.

    Attributes:
        turns: How many turns in a row were nothing but mistakes.
        error: The latest mistake of this turn, if there was one.
        has_proper: Whether there was a call of this turn that was well formed.
    """

    turns: int = 0
    error: Exception | None = None
    has_proper: bool = False


def note_mistake(error: Exception) -> None:
    """Note that the model has made a call that cannot be meant."""
    run = current_run.get()
    if run is not None:
        run.state.setdefault(_MISTAKES, _Mistakes()).error = error


def note_proper_call() -> None:
    """Note that the model has called a tool that exists, with arguments that can be read."""
    run = current_run.get()
    mistakes: _Mistakes | None = run.state.get(_MISTAKES) if run is not None else None
    if mistakes is not None:
        mistakes.has_proper = True


def begin_turn() -> None:
    """Count the turn that is over, if it was mistaken.

    Raises:
        UnknownToolError: E21, it was the last one a model gets.
        ToolInputError: E10, likewise.
    """
    run: Run | None = current_run.get()
    mistakes: _Mistakes | None = run.state.get(_MISTAKES) if run is not None else None
    if run is None or mistakes is None:
        return
    error, has_proper = mistakes.error, mistakes.has_proper
    if error is None or has_proper:
        del run.state[_MISTAKES]
        return
    mistakes.turns += 1
    mistakes.error = None
    if mistakes.turns >= MISTAKEN_TURNS:
        del run.state[_MISTAKES]  # whoever tries the run again begins anew
        raise error


def shapeless(tool_name: str, schema: Any, arguments: Any) -> ToolInputError | None:
    """Return what is wrong with arguments that are no JSON object where one is needed.

    Only their beginning is looked at: what is broken further on is told by the tool itself.
    """
    if not isinstance(arguments, str) or not arguments or arguments[0] == "{":
        return None
    begin = arguments.lstrip()[:1]
    if begin in ("{", "") or not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    kind = {'"': "a text", "[": "a list", "n": "null", "t": "a boolean", "f": "a boolean"}.get(begin)
    kind = "a number" if begin.isdigit() or begin == "-" else kind or "no JSON"
    reason = f'it is {kind}; give the parameters by name, such as {{"name": "value"}}'
    return ToolInputError(tool_name=tool_name, reason=reason)


def usable_names(names: Collection[str], wanted: str) -> str:
    """Return the sentence that tells a model which tools there are, the nearest to what it wanted first."""
    if len(names) <= NAMES_TOLD:
        return f"Tools you may use: {', '.join(names) or 'none'}."
    near = process.extract(wanted[:_LONGEST], names, scorer=fuzz.ratio, processor=str.lower, limit=NAMES_TOLD)
    told = ", ".join(str(name) for name, *_ in near)
    return f"Tools you may use, the nearest names first: {told} (and {len(names) - len(near)} more)."
