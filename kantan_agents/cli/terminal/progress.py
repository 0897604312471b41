"""A progress bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]


@contextmanager
def progress_bar(label: str, also: Progress | None = None) -> Iterator[Progress]:
    """Show a progress bar; yield its update function."""
    if not sys.stderr.isatty():
        yield also or _ignore
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            (also or _ignore)(done, total)

        yield update


def _ignore(_done: int, _total: int) -> None:
    pass
