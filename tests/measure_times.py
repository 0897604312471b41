"""Measures how long the tests take and writes ``times.json``, from which the tiers are made.

``python -m tests.measure_times`` runs all tests, which takes some time; the machine should do nothing else.
``python -m tests.measure_times REPORT.xml ...`` reads the reports of earlier runs of all tests instead, from
``pytest -m "slow or not slow" --junitxml=REPORT.xml -o junit_duration_report=total``. Of several reports, the
least time of each test counts: what else ran made it longer. A test that the last report lacks is gone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.tiers import ROOT, Time, Times


def main(reports: list[str]) -> int:
    """Write the file, and print what it says."""
    if reports:
        times = measured([Path(report) for report in reports])
        status = 0
    else:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            status = _run_all(report)
            times = measured([report])
    times.write()
    slow = [time for names in times.of.values() for time in names.values()]
    tests, seconds = sum(time.tests for time in slow), sum(time.seconds for time in slow)
    print(f"slow: {len(slow)} test functions with {tests} tests, which take {seconds:.0f} s together")
    return status


def _run_all(report: Path) -> int:
    options = ["-m", "slow or not slow", "-o", "junit_duration_report=total", "-q", f"--junitxml={report}"]
    return subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, check=False).returncode


def measured(reports: list[Path]) -> Times:
    """Return the times of the slow test functions in reports, the last of which has all tests."""
    least: dict[tuple[str, str, str], float] = {}
    for report in reports:
        cases = list(_cases(report))
        least = {case: min(took, least.get(case, took)) for case, took in cases}
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for (path, name, _), took in least.items():
        seconds[path, name].append(took)
    of: defaultdict[str, dict[str, Time]] = defaultdict(dict)
    for (path, name), times in seconds.items():
        time = Time(sum(times), len(times))
        if time.is_slow:
            of[path][name] = time
    return Times(of)


def _cases(report: Path) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Yield the file, the name, the parameters and the seconds of each test."""
    for case in ET.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        classes: list[str] = []
        while parts and not ROOT.joinpath(*parts).with_suffix(".py").exists():
            classes.insert(0, parts.pop())
        if parts:
            name, _, parameters = case.get("name", "").partition("[")
            case_id = "/".join(parts) + ".py", "::".join((*classes, name)), parameters
            yield case_id, float(case.get("time", "0"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
