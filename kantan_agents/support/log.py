"""The library's loggers.

They are silent without the application's logging configuration. structlog is imported on first use: the
import takes half as long as a list of traces, which logs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import structlog

logging.getLogger("kantan_agents").addHandler(logging.NullHandler())

_ARGUMENTS = {"exc_info", "stack_info"}
_TAKEN = (vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}) - _ARGUMENTS


def _rename_taken(_: Any, __: str, values: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    # `logging` raises KeyError for keys that are LogRecord attributes, and users may bind any key.
    return {f"{name}_" if name in _TAKEN else name: value for name, value in values.items()}


class _Logger:
    _made: structlog.stdlib.BoundLogger | None = None

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if self._made is None:
            self._made = _make_logger(self._name)
        return getattr(self._made, attribute)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger ``kantan_agents.<package>``.

    A key that collides with an attribute of the log record gets a trailing ``_``. The processors are fixed,
    because structlog's global configuration belongs to the application, and its default prints.
    """
    return cast("structlog.stdlib.BoundLogger", _Logger(name))


def _make_logger(name: str) -> structlog.stdlib.BoundLogger:
    import structlog

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
