"""What DBOS logs while it makes runs: one line each, with secrets masked."""

from __future__ import annotations

import logging
from collections.abc import Callable


class EndedError(Exception):
    """A run has failed, as DBOS may see it.

    DBOS pickles the error of a run and stores its attributes. Errors of runs have connections among theirs,
    which cannot be pickled, and what users have written, which must not be stored.
    """


def one_line_each(masked: Callable[[str], str]) -> Callable[[], None]:
    """Let DBOS log one line for each record; return a function that puts its logger back.

    DBOS adds the traceback of each failed run, at the level ERROR. This library logs these itself.

    Args:
        masked: Masks the secrets in a text.
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
