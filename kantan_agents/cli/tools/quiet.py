"""What installed providers print while they are loaded is no part of any answer."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def quiet() -> Iterator[None]:
    """Drop what is printed meanwhile, to both streams."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield
