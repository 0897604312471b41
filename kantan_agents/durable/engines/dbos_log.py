"""DBOS's log: one masked line each."""

from __future__ import annotations

import logging
from collections.abc import Callable


class EndedError(Exception):
    """A failed run's error for DBOS, which pickles errors and stores their attributes.

    The original has connections, which cannot be pickled, and user data, which must not be stored.
    """


def one_line_each(masked: Callable[[str], str]) -> Callable[[], None]:
    """Let DBOS log one masked line per record; return an undo function.

    DBOS adds tracebacks of failed runs, which this library logs itself.
    """

    def shortened(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, EndedError):
            return False
        text = (
            record.getMessage() if error is None else f"{record.getMessage()} {type(error).__name__}: {error}"
        )
        record.msg, record.args, record.exc_info, record.exc_text = (
            masked(" ".join(text.split())),
            (),
            None,
            None,
        )
        return True

    logger = logging.getLogger("dbos")
    logger.addFilter(shortened)
    return lambda: logger.removeFilter(shortened)
