"""The library's loggers: structlog on top of the standard library's ``logging``.

They pass through the application's own logging configuration and are silent until there is one.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog

logging.getLogger("kantan_agents").addHandler(logging.NullHandler())

_ARGUMENTS = {"exc_info", "stack_info"}
_TAKEN = (vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}) - _ARGUMENTS


def _rename_taken(_: Any, __: str, values: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    # `logging` raises KeyError for values named like attributes of its own, and users bind what they like.
    return {f"{name}_" if name in _TAKEN else name: value for name, value in values.items()}


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger ``name`` (``kantan_agents.<room>``).

    The event is the log message; its values are attributes of the log record, where any formatter
    finds them; one named like an attribute that records have anyway gets ``_`` at its end. The
    processors are given here, not taken from structlog's global configuration: that belongs to the
    application, and its default prints.
    """
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            _rename_taken,
            structlog.stdlib.render_to_log_kwargs,
        ],
    )
    return logger
