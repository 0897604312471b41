"""Checks that runs make no more function calls than before: a regression test that is exact on any machine.

    python benchmarks/call_counts.py [--update]

For this Python and this SDK, ``call_counts.json`` has two figures per workload: the calls of kantan_agents'
own code in a run, and the ratio of all calls of the run to those of the same run on the plain SDK. If one has
grown by more than 5 %, the check prints which and where, and exits with 1. Use ``--update`` to accept a
wanted change or to keep a
saving: it writes the figures of this Python and this SDK.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.counting_calls import Counts, count_all
from benchmarks.kept_counts import (
    LIMIT,
    OWN,
    RATIO,
    Change,
    Environment,
    Kept,
    changes,
    described,
    percent,
    read,
    write,
)
from benchmarks.measure import Rows, environment

KEPT = Path(__file__).with_suffix(".json")


def check(kept: Kept, now: Mapping[str, Counts], here: Environment, console: Console) -> bool:
    """Compare the counts with the stored ones and print the result; return whether none has grown too much.

    Counts that cannot be compared are listed. If no count can be, the check fails.
    """
    if not kept:
        console.print("No numbers are kept, so nothing can be compared: run with --update.")
        return False
    nearest = min(kept, key=here.distance)
    before = kept[nearest]
    if nearest == here:
        found = list(changes(before, now))
    else:
        console.print(f"No numbers are kept for {here}. Only {OWN} are compared, with those of {nearest}.")
        found = list(changes(before, now, [OWN]))
    for name in sorted(before.keys() ^ now.keys()):
        missing = "are kept" if name in now else "are counted now"
        console.print(f"{name}: not compared, no numbers {missing}.")
    if not found:
        console.print("Nothing can be compared: run with --update.")
        return False
    _show(found, console)
    checked = [change for change in found if change.is_checked]
    grown = [change for change in checked if change.growth > LIMIT]
    for change in grown:
        console.print(described(change, before[change.workload], now[change.workload]))
    if grown:
        console.print(f"More than {percent(LIMIT)}. If it is wanted: run with --update.")
    elif any(change.growth < -LIMIT for change in checked) and nearest == here:
        console.print("Some calls were saved: run with --update, so that they stay saved.")
    return not grown


def _show(found: list[Change], console: Console) -> None:
    show = Rows(console, "workload", "counted", "kept", "now", "growth", widths=(14, 18, 10, 10, 10))
    for change in found:
        digits = ",.3f" if change.figure == RATIO else ",.0f"
        kept, now = format(float(change.kept), digits), format(float(change.now), digits)
        show.row(change.workload, change.figure, kept, now, percent(change.growth, signed=True))


def main(*, update: bool, path: Path) -> int:
    """Count, then compare or store the counts; return the exit status."""
    console = Console(width=110, highlight=False, markup=False, soft_wrap=True)
    here, kept = Environment.here(), read(path)
    console.print(environment("openai-agents", "openai", "pydantic"))
    now = asyncio.run(count_all(), debug=False)
    if not update:
        return 0 if check(kept, now, here, console) else 1
    write(path, {**kept, here: now})
    console.print(f"The numbers for {here} are kept in {path.name}.")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="keep the numbers of this Python and this SDK")
    parser.add_argument("--kept", type=Path, default=KEPT, help="the file of kept numbers")
    arguments = parser.parse_args()
    sys.exit(main(update=arguments.update, path=arguments.kept))
