"""How a run or a call has failed, as it is recorded."""

from __future__ import annotations

import attrs


@attrs.frozen
class RecordedError:
    """How a run or a call has failed.

    Attributes:
        type: Name of the exception's class.
        message: Its message.
        code: Its code, if it is an error of this library.
        status: The HTTP status that a provider has answered with, if any.
    """

    type: str
    message: str
    code: str | None = None
    status: int | None = None
