"""Compares frameworks and measures growth curves, in one command.

    python -m benchmarks [--quick] [--only NAME ...] [--update] [--list]

Frameworks are measured in turn (A B A B ...), each in its own processes and its own environment, which is
made once and reused. Growth curves show how a cost grows with a size. ``--list`` names both. The exit code is
1 if a goal is missed (except with ``--quick``) or something failed, 2 if the command line is invalid, and 130
if the run was interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.pages import written_page
from benchmarks.peers.catalog import BY_ID, WORKLOADS, Workload
from benchmarks.peers.compared import PEERS, REPOSITORY
from benchmarks.peers.comparison import compare
from benchmarks.peers.environments import NotInstalledError
from benchmarks.peers.fleet import WorkerError
from benchmarks.peers.goals import missed
from benchmarks.peers.output import PEERS_JSON, write
from benchmarks.peers.results import Results
from benchmarks.peers.sizes import QUICK, WHOLE, Sizes
from benchmarks.peers.table import markdown

RESULTS = REPOSITORY / "benchmarks" / "results"
ENVIRONMENTS = REPOSITORY / ".benchmarks"
LEAST_REPEATS = 9

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    titles = _titles()
    if options.list:
        sys.stdout.writelines(f"{name:<20} {title}\n" for name, title in titles.items())
        return OK
    only = tuple(dict.fromkeys(options.only or _published()))
    for given, there in ((only, (*titles,)), (options.peers, PEERS)):
        unknown = [name for name in given if name not in there]
        if unknown:
            _say(f"There is no {', '.join(unknown)}; there are: {', '.join(there)}")
            return MISUSED
    if options.update and (options.quick or options.output or any(name not in BY_ID for name in only)):
        _say("--update is for workloads that are measured in full: no curves, no --quick, no --output.")
        return MISUSED
    is_over_published = options.output is not None and options.output.resolve() == RESULTS
    if is_over_published and not _is_whole(options):
        _say("A part of it may not take the place of what is published: give --update.")
        return MISUSED
    try:
        return _measure(options, only)
    except (NotInstalledError, WorkerError, RuntimeError, ValueError, FileNotFoundError) as error:
        _say(f"FAILED: {error}")
        return FAILED
    except KeyboardInterrupt:
        _say("Interrupted.")
        return INTERRUPTED


def _published() -> list[str]:
    """Return what a whole run measures."""
    from benchmarks.growth import CURVES

    return [workload.id for workload in WORKLOADS] + [curve.name for curve in CURVES if curve.is_published]


def _titles() -> dict[str, str]:
    from benchmarks.growth import CURVES

    return {workload.id: workload.title for workload in WORKLOADS} | {
        curve.name: curve.title for curve in CURVES
    }


def _measure(options: argparse.Namespace, only: Sequence[str]) -> int:
    """Measure what ``only`` names, then print and write the results."""
    folder: Path | None = options.output
    if folder is None and not options.quick and not options.update:
        if not _is_whole(options):
            _say("A part of it is measured: nothing is written without --output or --update.")
        else:
            folder = RESULTS
    workloads = [BY_ID[name] for name in only if name in BY_ID]
    lines: tuple[str, ...] = ()
    is_short = False
    if workloads:
        lines, is_short = _compared(workloads, options, folder)
    curves = [name for name in only if name not in BY_ID]
    if curves:
        from benchmarks.growth import measure

        asyncio.run(measure(curves, quick=options.quick, output=folder))
    for line in lines:
        _say(f"GOAL MISSED  {line}")
    return FAILED if is_short or (lines and not options.quick) else OK


def _compared(
    workloads: Sequence[Workload], options: argparse.Namespace, folder: Path | None
) -> tuple[tuple[str, ...], bool]:
    """Compare frameworks, then print and write the results.

    Returns:
        A line for each missed goal, and whether a requested peer or workload is missing.
    """
    published = None
    if options.update:  # report problems before hours of measuring
        published = Results.from_json((RESULTS / PEERS_JSON).read_text(encoding="utf-8"))
        published.check_has(workload.id for workload in workloads)
    sizes = _sizes(quick=options.quick, repeats=options.repeats)
    results = compare(workloads, options.peers, sizes, options.environments, _say)
    sys.stdout.write(markdown(results))
    for name, reason in results.failed.items():
        _say(f"FAILED {name}: {reason}")
    is_short = bool(results.failed) or any(name in results.left_out for name in options.peers)
    lines = missed(results)
    if published is not None:
        folder = RESULTS if results.rows else None
        results = published.with_rows_of(results)
    written = write(results, folder) if folder is not None else []
    is_published = folder is not None and folder.resolve() == RESULTS
    if is_published and not (results.left_out or results.failed):
        written.append(written_page(results))
    for path in written:
        _say(f"written: {path}")
    return lines, is_short


def _is_whole(options: argparse.Namespace) -> bool:
    return not options.quick and not options.only and {*options.peers} == {*PEERS}


def _sizes(*, quick: bool, repeats: int | None) -> Sizes:
    """Return how much to measure; ``repeats`` is rounded up to whole generations of processes."""
    sizes = QUICK if quick else WHOLE
    if repeats is None:
        return sizes
    least = repeats if quick else max(repeats, LEAST_REPEATS)
    pairs = math.ceil(max(1, least) / sizes.generations)
    long_pairs = max(sizes.long_pairs, math.ceil(pairs * sizes.long_pairs / sizes.pairs))
    return attrs.evolve(sizes, pairs=pairs, long_pairs=long_pairs)


def _parser() -> argparse.ArgumentParser:
    documentation = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=documentation[0],
        epilog=" ".join(documentation[4:]).replace("``", ""),
    )
    parser.add_argument("--quick", action="store_true", help="a check of a minute; its figures say little")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure these workloads and curves")
    parser.add_argument("--list", action="store_true", help="list workloads and curves")
    parser.add_argument(
        "--update",
        action="store_true",
        help="put these workloads, measured again, among the published results",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        help=f"pairs of batches (default {WHOLE.generations * WHOLE.pairs}, at least {LEAST_REPEATS} but "
        f"with --quick), rounded up to {WHOLE.generations} groups of processes; fewer where one takes long",
    )
    parser.add_argument(
        "--peers", nargs="*", default=[*PEERS], metavar="NAME", help=f"of {', '.join(PEERS)} (default: all)"
    )
    parser.add_argument(
        "--environments",
        type=Path,
        default=ENVIRONMENTS,
        metavar="DIR",
        help=f"where environments are kept (default {ENVIRONMENTS.name} in the repository)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where results are written (default benchmarks/results; with --quick, --only or fewer peers: "
        "nowhere unless --update is given)",
    )
    return parser


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
