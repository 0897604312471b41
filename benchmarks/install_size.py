"""What an installation brings: packages, megabytes and import time of the plain package and of each extra.

    python -m benchmarks.install_size [--only NAME ...] [--imports N] [--write]

Each row is a fresh environment, made from a wheel of this repository with uv if it is on the path, which
takes less time, and otherwise with pip. Megabytes (10**6 bytes) are those of all files. Compiled modules are
counted apart: pip makes them, uv does not unless asked. Import time is a ratio to ``import agents`` in the
same environment, the median of pairs of new interpreters. ``--write`` puts the table into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "performance.md"
BEGIN: Final = "<!-- made by python -m benchmarks.install_size --write -->\n\n"
END: Final = "\n<!-- end -->"

SDK: Final = "SDK + kantan-llm"
PLAIN: Final = "kantan-agents"

# What a program imports that uses the extra, and what the feature imports later, on first use.
IMPORTS: Final[Mapping[str, str]] = {
    SDK: "import agents, kantan_llm",
    PLAIN: "from kantan_agents import Agent, TraceStore, record_traces",
    "chat": "import kantan_agents.cli.chat.run",
    "dbos": "from kantan_agents.durable import DurableRuns; import dbos",
    "lab": "from kantan_agents.lab import Rollout, compare, evaluate, improve; import gepa.api",
    "otel": "from kantan_agents import OtelExporter",
    "page": "from kantan_agents.page import traces_app",
    "postgres": "from kantan_agents import TraceStore; import psycopg",
    "retrieval": "from kantan_agents import ToolRetrieval; import bm25s, snowballstemmer",
    "temporal": "from kantan_agents.durable import DurableRuns; import temporalio.worker",
    "testing": "from kantan_agents.testing import strategies",
}


@attrs.frozen
class Size:
    """What an environment has.

    Attributes:
        packages: Names of the packages.
        megabytes: Size of all files without compiled modules.
        compiled: Size of the compiled modules.
        own: Size of this package itself, without compiled modules.
        own_compiled: Size of the compiled modules of this package.
    """

    packages: frozenset[str]
    megabytes: float
    compiled: float
    own: float
    own_compiled: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(IMPORTS), default=list(IMPORTS))
    parser.add_argument("--imports", type=int, default=7, help="pairs of imports for each ratio")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(_rows(Path(folder), options.only, options.imports))
    table = "\n".join(rows) + "\n"
    print(table)
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")


def _rows(folder: Path, names: Iterable[str], count: int) -> Iterable[str]:
    """Yield the lines of the table."""
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    yield "| Install | Packages | MB | and compiled | Import |"
    yield "| --- | --- | --- | --- | --- |"
    base: Size | None = None
    for name in names:
        packages = {SDK: ["openai-agents", "kantan-llm"], PLAIN: [str(wheel)]}.get(name, [f"{wheel}[{name}]"])
        python = _environment(folder / name.replace(" ", ""), packages)
        size, ratio = _size(python), _ratio(python, IMPORTS[name], count)
        shown = f"`{PLAIN}[{name}]`" if name not in (SDK, PLAIN) else name
        more, sign = (size, "") if base is None else (_beyond(size, base), "+")
        figures = (f"{len(more.packages)}", f"{more.megabytes:.1f}", f"{more.compiled:.1f}")
        yield f"| {shown} | {' | '.join(sign + figure for figure in figures)} | {ratio:.2f} |"
        if name == PLAIN:
            yield f"| of that, {PLAIN} itself | +1 | +{size.own:.1f} | +{size.own_compiled:.1f} | |"
        if name in (SDK, PLAIN):
            base = size
        print(f"{name}: {', '.join(sorted(more.packages))}", file=sys.stderr, flush=True)


def _beyond(size: Size, base: Size) -> Size:
    return Size(
        size.packages - base.packages,
        size.megabytes - base.megabytes,
        size.compiled - base.compiled,
        size.own,
        size.own_compiled,
    )


def _environment(folder: Path, packages: Sequence[str]) -> Path:
    """Return the interpreter of a fresh environment with these packages, and nothing else: not even pip."""
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    uv = shutil.which("uv")
    if uv is None:
        _run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *packages)
    else:
        _run(uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *packages)
    return python


def _size(python: Path) -> Size:
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = Path(
        subprocess.run([python, "-c", program], capture_output=True, check=True, text=True).stdout.strip()
    )
    files = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    own = [path for path in files if path.relative_to(place).parts[0].startswith("kantan_agents")]
    return Size(
        frozenset(path.name.partition("-")[0] for path in place.glob("*.dist-info")),
        *_megabytes(files),
        *_megabytes(own),
    )


def _megabytes(files: Iterable[Path]) -> tuple[float, float]:
    """Return the size of files, and apart from it that of the compiled modules among them."""
    sizes = {True: 0, False: 0}
    for path in files:
        sizes[path.suffix == ".pyc"] += path.stat().st_size
    return sizes[False] / 1e6, sizes[True] / 1e6


def _ratio(python: Path, statement: str, count: int) -> float:
    """Return how much longer a statement takes than ``import agents``."""
    _seconds(python, statement)  # reads the files from the disk
    return statistics.median(
        _seconds(python, statement) / _seconds(python, "import agents") for _ in range(count)
    )


def _seconds(python: Path, statement: str) -> float:
    start = time.perf_counter()
    _run(str(python), "-I", "-c", statement)
    return time.perf_counter() - start


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL if "pip" in command else None)


if __name__ == "__main__":
    main()
