"""pytest plugin: a few tests that fail are run once more, alone, each in a new process.

``-p tests.second_chance --second-chance=DIRECTORY`` writes two files there:

- ``failed.txt``: each failure with the end of its traceback, as soon as it is known.
- ``unstable.txt``: the names of tests that failed and then passed alone. If all did, pytest succeeds.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

MOST_TESTS = 5
TRACEBACK_LINES = 25


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--second-chance", default="", metavar="DIRECTORY", help="where to write what failed")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    directory = config.getoption("--second-chance")
    if not directory or hasattr(config, "workerinput"):  # pytest-xdist reports to its main process
        return (yield)
    failures = Failures(Path(directory))
    config.pluginmanager.register(failures)
    status = yield
    return failures.after_second_chance(status)


class Failures:
    """What has failed in a session."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._failed_file = directory / "failed.txt"
        self._unstable_file = directory / "unstable.txt"
        self._texts: dict[str, list[str]] = {}
        self._was_collected = True
        self._other_failures = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._was_collected = False
            self._add(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # Plugins complain by counting a failure, as pytest-cov does.
        self._other_failures = session.testsfailed - sum(map(len, self._texts.values()))

    def after_second_chance(self, status: object) -> object:
        """Return the exit status of the session, from the one it had before failed tests ran again."""
        only_tests_failed = status == pytest.ExitCode.TESTS_FAILED and self._was_collected
        if not only_tests_failed or self._other_failures or len(self._texts) > MOST_TESTS:
            return status
        unstable = [name for name in self._texts if _passes_alone(name)]
        self._unstable_file.write_text("".join(f"{name}\n" for name in unstable), encoding="utf-8")
        failed = [text for name, texts in self._texts.items() if name not in unstable for text in texts]
        self._failed_file.write_text("".join(failed), encoding="utf-8")
        return status if failed else pytest.ExitCode.OK

    def _add(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        lines = report.longreprtext.splitlines()[-TRACEBACK_LINES:]
        text = "".join(f"{line}\n" for line in [f"FAILED {report.nodeid} ({report.when})", *lines, ""])
        self._texts.setdefault(report.nodeid, []).append(text)
        with self._failed_file.open("a", encoding="utf-8") as file:
            file.write(text)


def _passes_alone(name: str) -> bool:
    print(f"\n== again, alone: {name}", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "0", "--second-chance=", name]
    return subprocess.run(command, check=False).returncode == 0
