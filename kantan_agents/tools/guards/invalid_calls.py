"""Invalid tool calls: hints, and a limit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import attrs

from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import ToolInputError
from kantan_agents.support.nearest import most_similar
from kantan_agents.tools.guards.repeated_failures import begin_turn_after_failures

INVALID_TURNS: Final = 5

NAMES_LISTED: Final = 20

_LONGEST: Final = 200
_INVALID_CALLS = object()


@attrs.define
class _InvalidCalls:
    """``turns`` counts consecutive turns with invalid calls only."""

    turns: int = 0
    error: Exception | None = None
    has_valid: bool = False


def record_invalid_call(error: Exception) -> None:
    """Record an invalid call of the model."""
    run = current_run.get()
    if run is not None:
        run.state.setdefault(_INVALID_CALLS, _InvalidCalls()).error = error


def record_valid_call() -> None:
    """Record an existing tool's well-formed call."""
    run = current_run.get()
    invalid: _InvalidCalls | None = run.state.get(_INVALID_CALLS) if run is not None else None
    if invalid is not None:
        invalid.has_valid = True


def begin_turn() -> None:
    """Count the previous turn if it had invalid calls only; E21, E10 or E27 at the limit."""
    run: Run | None = current_run.get()
    if run is None or not run.state:
        return
    begin_turn_after_failures(run)
    invalid: _InvalidCalls | None = run.state.get(_INVALID_CALLS)
    if invalid is None:
        return
    error, has_valid = invalid.error, invalid.has_valid
    if error is None or has_valid:
        del run.state[_INVALID_CALLS]
        return
    invalid.turns += 1
    invalid.error = None
    if invalid.turns >= INVALID_TURNS:
        del run.state[_INVALID_CALLS]  # a retry of the run starts at zero
        raise error


def malformed_arguments(tool_name: str, schema: Any, arguments: Any) -> ToolInputError | None:
    """Return an error if the schema needs a JSON object and the first character shows another value."""
    if not isinstance(arguments, str) or not arguments or arguments[0] == "{":
        return None
    begin = arguments.lstrip()[:1]
    if begin in ("{", "") or not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    kind = {'"': "a text", "[": "a list", "n": "null", "t": "a boolean", "f": "a boolean"}.get(begin)
    kind = "a number" if begin.isdigit() or begin == "-" else kind or "not JSON"
    reason = f'it is {kind}; give the parameters by name, such as {{"name": "value"}}'
    return ToolInputError(tool_name=tool_name, reason=reason)


def usable_tools_sentence(names: Collection[str], wanted: str) -> str:
    """List the tools, those nearest to ``wanted`` first."""
    if len(names) <= NAMES_LISTED:
        return f"Tools you may use: {', '.join(names) or 'none'}."
    known = list(names)
    near = most_similar(wanted[:_LONGEST].lower(), [name.lower() for name in known], NAMES_LISTED)
    listed = ", ".join(known[place] for place in near)
    return f"Tools you may use, the nearest names first: {listed} (and {len(names) - len(near)} more)."
