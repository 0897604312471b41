"""Reports misspelled reserved keys of a context."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.log import get_logger
from kantan_agents.support.nearest import near_keys

TOOL_RULES = "tool_rules"

_MOST_KEYS = 4096
FINE_KEYS: set[str] = {TOOL_RULES}

_fine: dict[str, set[str]] = {TOOL_RULES: FINE_KEYS}
_reported: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
_log = get_logger("kantan_agents.tools")


def check_context_keys(run: Run, reserved: str = TOOL_RULES) -> None:
    """Warn about keys that are almost ``reserved``; E75 if the agent is strict."""
    fine = _fine.setdefault(reserved, {reserved})
    if run.context.keys() <= fine or run.delegation is not None:
        return  # the usual case; or a delegated run, whose context was already checked
    near = near_keys(run.context, reserved)
    if near:
        names = ", ".join(map(repr, near))
        reported = _reported.setdefault(run.agent, set())
        if not reported.issuperset(near):
            reported.update(near)
            _log.warning(f"context key is almost {reserved!r}: {names}", keys=near, reserved=reserved)
        if getattr(run.agent, "strict", False):
            reason = f"the key {names} has no effect; the rules of a run are under {reserved!r}"
            raise InvalidOptionError(option="context", reason=reason)
    elif len(fine) < _MOST_KEYS:
        fine.update(key for key in run.context if isinstance(key, str))
