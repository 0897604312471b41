"""The engine for the option ``engine``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kantan_agents.durable.engines.engine import Engine, Limits
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.extras import require_extra


def checked_engine(engine: Any) -> str:
    """Return the engine's and its extra's name; raises E75 or E198."""
    name = "temporal" if isinstance(engine, str) and engine.startswith("temporal://") else "dbos"
    if name == "temporal":
        if not _is_readable(engine):
            # Without the value: it may have a key.
            reason = (
                "must be temporal://HOST:PORT/NAMESPACE; keys and certificates are given by Temporal's own "
                "variables, such as TEMPORAL_API_KEY"
            )
            raise InvalidOptionError(option="engine", reason=reason)
    elif engine != "dbos":
        reason = "must be 'dbos' or temporal://HOST:PORT/NAMESPACE"
        raise InvalidOptionError(option="engine", reason=reason)
    require_extra(name)
    return name


def _is_readable(engine: str) -> bool:
    try:
        url = urlsplit(engine)
        _ = url.port
    except ValueError:
        return False
    return not ("@" in url.netloc or url.query or url.fragment or "/" in url.path.strip("/"))


def engine_of(
    engine: str,
    database: RunDatabase,
    application: str,
    max_recoveries: int,
    interval: float,
    queues: Mapping[str, Limits],
) -> Engine:
    """Return a new engine; raises E75. ``interval`` is in seconds."""
    if engine == "dbos":
        from kantan_agents.durable.engines.dbos_engine import DBOSEngine

        return DBOSEngine(database, application, max_recoveries, interval)
    from kantan_agents.durable.engines.temporal_engine import TemporalEngine, check_limits

    check_limits(queues)
    return TemporalEngine(database, application, max_recoveries, interval, engine)
