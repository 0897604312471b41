"""The progress bar of ``kantan-agents eval run``, with what the runs have cost so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kantan_agents.cli.terminal.show_quantities import count_text, counted

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import Progress


@contextmanager
def show_progress(reached: list[Progress], *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Note how far an evaluation is, and show it on standard error if that is a terminal.

    Args:
        reached: Its last item is replaced by the newest progress.
        quiet: Whether to show nothing.
    """

    def note(progress: Progress) -> None:
        reached[-1] = progress

    if quiet or not sys.stderr.isatty():
        yield note
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Progress) -> None:
            note(progress)
            bar.update(task, completed=progress.done, total=progress.total, description=spent_text(progress))

        yield show


def spent_text(progress: Progress) -> str:
    """Return what the runs of this start have used, and how many have failed."""
    parts = [f"{count_text(progress.tokens)} tokens"]
    if progress.cost:
        parts.append(f"cost {progress.cost:.4g}")
    if progress.failed:
        parts.append(counted(progress.failed, "failure"))
    return ", ".join(parts)
