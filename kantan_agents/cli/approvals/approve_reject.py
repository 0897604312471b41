"""``kantan-agents approvals approve`` and ``reject``."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import typer

from kantan_agents.cli.terminal.durable_runs import with_runs
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import InvalidOptionError


def approve_call(database: str, run_id: str, call_id: str | None, *, by: str, arguments: str | None) -> None:
    """Approve a call."""
    edited = None if arguments is None else _object(arguments)
    with_runs(database, lambda runs: runs.approve(run_id, call_id, by=by, arguments=edited))
    typer.echo(one_line(f"{run_id}: {call_id or 'the call'} approved by {by}"))


def reject_call(database: str, run_id: str, call_id: str | None, *, by: str, reason: str | None) -> None:
    """Reject a call."""
    with_runs(database, lambda runs: runs.reject(run_id, call_id, by=by, reason=reason))
    typer.echo(one_line(f"{run_id}: {call_id or 'the call'} rejected by {by}"))


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidOptionError(option="--arguments", reason=f"is not JSON: {error}") from error
    if not isinstance(value, dict):
        reason = f"must be a JSON object, not {type(value).__name__}"
        raise InvalidOptionError(option="--arguments", reason=reason)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")
