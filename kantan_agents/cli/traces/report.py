"""``traces report``: writes runs to one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError, TraceNotFoundError
from kantan_agents.support.extras import require_extra

if TYPE_CHECKING:
    from kantan_agents.middleware import Redact

_EXAMPLE = "app.privacy:redact"


def write_runs(
    path: Path,
    trace_id: str | None,
    filters: dict[str, Any],
    *,
    output: str,
    redact: str | None,
    prices: Mapping[str, tuple[float, float]],
    limit: int,
) -> None:
    """Write one run, or filtered ones, latest first."""
    if trace_id is not None and any(value is not None for value in filters.values()):
        raise InvalidOptionError(option="ID", reason="give a run or filters, not both")
    require_extra("page")
    masking = None if redact is None else _redact(redact)
    store = open_store(path)

    from kantan_agents.lab.experiment.prices import Prices
    from kantan_agents.page.data.read_run import read_run
    from kantan_agents.page.report import write_run_report

    ids = (
        [trace_id] if trace_id is not None else [one.trace_id for one in store.traces(limit=limit, **filters)]
    )
    if not ids:
        raise TraceNotFoundError(trace_id="any", path=str(path), reason="no run passes these filters")
    priced = Prices.of(prices)
    runs = [read_run(store, one, priced) for one in ids]
    write_run_report(runs, output, redact=masking)
    typer.echo(f"{counted(len(runs), 'run')} written to {output}", err=True)


def _redact(name: str) -> Redact:
    from kantan_agents.middleware import Redact

    if name == "default":
        return Redact()
    found = load_object(name, "--redact", _EXAMPLE)
    if not isinstance(found, Redact):
        raise InvalidOptionError(
            option="--redact", reason=f"{name} is not a Redact but {type(found).__name__}"
        )
    return found
