"""The library's loggers: structlog on top of the standard library's ``logging``.

They pass through the application's own logging configuration and are silent until there is one.
"""

from __future__ import annotations

import logging

import structlog

logging.getLogger("kantan_agents").addHandler(logging.NullHandler())


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger ``name`` (``kantan_agents.<room>``).

    The event is the log message; its values are attributes of the log record, where any formatter
    finds them. The processors are given here, not taken from structlog's global configuration: that
    belongs to the application, and its default prints.
    """
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.render_to_log_kwargs,
        ],
    )
    return logger
