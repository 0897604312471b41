"""The limits of a worker's queues."""

from __future__ import annotations

import math

from kantan_agents.durable import Limits
from kantan_agents.errors import InvalidOptionError


def limits_of(
    *,
    concurrency: int,
    total: int | None,
    rate: str | None,
    tenant_concurrency: int | None,
    tenant_rate: str | None,
) -> Limits:
    """Return the limits that options name."""
    for option, value in (
        ("--concurrency", concurrency),
        ("--total", total),
        ("--tenant-concurrency", tenant_concurrency),
    ):
        if value is not None and value < 1:
            raise InvalidOptionError(option=option, reason=f"must be 1 or more, not {value}")
    runs = None if rate is None else _rate("--rate", rate)
    tenant_runs = None if tenant_rate is None else _rate("--tenant-rate", tenant_rate)
    if runs is not None and tenant_runs is not None and runs[1] != tenant_runs[1]:
        reason = f"must be for the same time as --rate, {runs[1]:g} seconds"
        raise InvalidOptionError(option="--tenant-rate", reason=reason)
    period = (runs or tenant_runs or (0, 60.0))[1]
    return Limits(
        concurrency=concurrency,
        total=total,
        rate=None if runs is None else runs[0],
        period=period,
        per_tenant=tenant_concurrency,
        tenant_rate=None if tenant_runs is None else tenant_runs[0],
    )


def _rate(option: str, text: str) -> tuple[int, float]:
    count, _, seconds = text.partition("/")
    try:
        parsed = int(count), float(seconds)
    except ValueError:
        parsed = 0, 0.0
    if parsed[0] < 1 or not 0 < parsed[1] < math.inf:
        raise InvalidOptionError(option=option, reason=f"must be N/SECONDS, such as 100/60, not {text!r}")
    return parsed
