"""Whether every benchmark runs: all of them in one process, each as short as it can be.

    python -m benchmarks.smoke

The figures say nothing, because every batch is one or two calls long. The exit code is 1 if a benchmark
fails; a missed goal is not a failure.
"""

from __future__ import annotations

import runpy
import sys
import time
import traceback
from pathlib import Path

from agents import set_trace_processors, set_tracing_disabled

from benchmarks import __main__ as comparisons
from benchmarks import measure

FOLDER = Path(__file__).parent
COMMANDS = (
    ("overhead.py", "--quick"),
    ("profiles.py", "--runs", "5"),
    ("tool_rules.py", "--quick", "--published", "none"),
    ("tracing.py", "--quick"),
    ("middleware.py", "--quick"),
    ("structured.py", "--quick"),
    ("valid_shares.py", "--quick"),
    ("agent_files.py", "--quick"),
    ("retrieval.py", "--quick"),
    ("evaluation.py", "--quick"),
    ("statistics.py", "--quick", "--repeats", "2"),
    ("rollout.py", "--quick"),
    ("durable.py", "--quick"),
    ("postgres.py", "--quick"),
    ("telemetry.py", "--quick"),
    ("toolkit.py", "--quick"),
    ("startup.py", "--quick", "--only", "kantan-agents", "traces list", "chat"),
)
# One workload of each kind: tests/benchmarks does the work of all of them, and of all growth curves.
KINDS = ("one_turn", "at_once_50", "http_one_turn", "construct_0", "held_0", "traced_empty", "import")
COMPARED = ("--quick", "--repeats", "1", "--peers", "kantan_agents_published", "--only", *KINDS)


def main() -> int:
    """Run all of them and return the exit code."""
    measure.shortest = True
    failed = [name for name, *options in COMMANDS if not _runs(name, options)]
    if comparisons.main(COMPARED) != comparisons.OK:
        failed.append("python -m benchmarks")
    for name in failed:
        sys.stderr.write(f"FAILED {name}\n")
    return 1 if failed else 0


def _runs(name: str, options: list[str]) -> bool:
    """Run one as a script of its own; say whether it ended as it should."""
    sys.stdout.write(f"\n-- {name} {' '.join(options)}\n")
    sys.stdout.flush()
    start = time.perf_counter()
    before, sys.argv = sys.argv, [str(FOLDER / name), *options]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return not end.code
    except Exception:  # noqa: BLE001 - the others are to run all the same, and the exit code reports
        traceback.print_exc()
        return False
    finally:
        sys.argv = before
        set_tracing_disabled(disabled=False)  # by a script that is usually alone in its process
        set_trace_processors([])
        sys.stdout.write(f"-- {name}: {time.perf_counter() - start:.1f} s\n")
        sys.stdout.flush()
    return True


if __name__ == "__main__":
    sys.exit(main())
