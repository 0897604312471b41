"""pytest plugin: the fast tier and the slow one.

A test is slow if ``times.json`` says that it takes long; ``python -m tests.measure_times`` writes that file.
A test that is not in the file, such as a new one, is fast. ``@pytest.mark.fast("REASON")`` keeps a test in
the fast tier that takes long, and ``@pytest.mark.slow`` takes one out before it is measured.

``pytest`` and ``pytest FOLDER`` run the fast tier. A file or a test that is named on the command line runs
whole, and so does what ``-m`` or ``--last-failed`` selects: ``pytest -m "slow or not slow"`` runs everything.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_name("times.json")

SLOW_SECONDS = 0.07
"""A test function is slow if one of its tests takes this long on average."""

SLOW_TOTAL = 0.5
"""A test function is slow if its tests take this long together."""

ALL = 'python -m pytest -m "slow or not slow"'

_LEFT_OUT = "slow_tests_left_out"
_MARK = "pytest.mark.fast("


@attrs.frozen
class Time:
    """What the tests of one function took when they were measured.

    Attributes:
        seconds: All of them together.
        tests: How many there were.
    """

    seconds: float
    tests: int

    @property
    def is_slow(self) -> bool:
        """Whether they belong to the slow tier."""
        return self.seconds >= SLOW_TOTAL or self.seconds / self.tests >= SLOW_SECONDS


@attrs.define
class Times:
    """The measured times of the slow test functions.

    Attributes:
        of: The times by file, as a path in the repository, and by name: ``function`` or ``Class::function``.
    """

    of: Mapping[str, Mapping[str, Time]]

    @classmethod
    def read(cls) -> Times:
        """Read the file that ``write`` has written."""
        found = json.loads(FILE.read_text(encoding="utf-8"))
        return cls(
            {path: {name: Time(*time) for name, time in names.items()} for path, names in found.items()}
        )

    def write(self) -> None:
        """Write the file, with one line for each test function, so that changes can be read."""
        files = ",\n".join(
            f'"{path}": {{\n'
            + ",\n".join(
                f' "{name}": [{time.seconds:.2f}, {time.tests}]'
                for name, time in sorted(self.of[path].items())
            )
            + "\n}"
            for path in sorted(self.of)
        )
        FILE.write_text(f"{{\n{files}\n}}\n", encoding="utf-8")

    def is_slow(self, path: str, name: str) -> bool:
        """Return whether a test function is slow."""
        time = self.of.get(path, {}).get(name)
        return time is not None and time.is_slow

    @cached_property
    def all_slow(self) -> Mapping[str, int]:
        """The files whose test functions are all slow, with the number of their tests."""
        return {
            path: sum(time.tests for time in times.values())
            for path, times in self.of.items()
            if _has_only(ROOT / path, {name for name, time in times.items() if time.is_slow})
        }


def functions_in(file: Path) -> set[str]:
    """Return the names of the test functions in a file, and of its state machines' test cases."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.update(f"{node.name}::{one}" for one in _tests_in(node.body))
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "TestCase"
        ):
            names.update(f"{target.id}::runTest" for target in node.targets if isinstance(target, ast.Name))
        else:
            names.update(_tests_in([node]))
    return names


def _tests_in(nodes: Sequence[ast.stmt]) -> list[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in nodes if isinstance(node, functions) and node.name.startswith("test_")]


def _has_only(file: Path, slow: set[str]) -> bool:
    if not slow or not file.exists():
        return False
    text = file.read_text(encoding="utf-8")
    # Counted first, because parsing all files would take a second.
    return text.count("def test_") <= len(slow) and _MARK not in text and functions_in(file) <= slow


@attrs.define
class Selection:
    """What a session runs.

    Attributes:
        fast_only: Whether it runs the fast tier, except for what is named.
        named: The files and tests that are named on the command line.
        folders: The folders that are.
    """

    fast_only: bool
    named: Sequence[str]
    folders: Sequence[Path]

    @classmethod
    def of(cls, config: pytest.Config) -> Selection:
        """Return what the options and arguments of a session select."""
        chosen = config.option.markexpr or config.getoption("lf", default=False)
        named: list[str] = []
        folders: list[Path] = []
        for argument in config.args:
            path, colons, rest = str(argument).partition("::")
            file = (config.invocation_params.dir / path).resolve()
            if file.is_file():
                named.append(f"{in_repository(file)}{colons}{rest}")
            else:
                folders.append(file)
        return cls(not chosen, named, folders)

    @property
    def files(self) -> set[str]:
        """The files in which everything or something is named."""
        return {name.partition("::")[0] for name in self.named}

    def names(self, item: pytest.Item) -> bool:
        """Return whether a test is named, also as one of a file, class or function."""
        return any(
            item.nodeid.startswith(name) and item.nodeid[len(name) : len(name) + 1] in ("", ":", "[")
            for name in self.named
        )


class Tiers:
    """Marks the slow tests, leaves them out of the fast tier, and says so at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._times = Times.read()
        self._selection = Selection.of(config)
        self._left_out = 0

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out files in which no test is fast: importing them would take time too."""
        if not self._selection.fast_only or collection_path.suffix != ".py":
            return None
        path = in_repository(collection_path)
        if path not in self._times.all_slow or path in self._selection.files:
            return None
        # pytest also asks about the neighbors of a file that is named.
        if not any(collection_path.is_relative_to(folder) for folder in self._selection.folders):
            return None
        self._left_out += self._times.all_slow[path]
        return True

    @pytest.hookimpl(tryfirst=True)  # before `-m` selects
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Mark the slow tests; leave them out if nothing else was asked for."""
        fast: list[pytest.Item] = []
        slow: list[pytest.Item] = []
        for item in items:
            path, _, name = item.nodeid.partition("::")
            if item.get_closest_marker("fast") is None and self._times.is_slow(path, name.partition("[")[0]):
                item.add_marker(pytest.mark.slow)
            is_slow = item.get_closest_marker("slow") is not None and not self._selection.names(item)
            (slow if is_slow else fast).append(item)
        if self._selection.fast_only and slow:
            self._left_out += len(slow)
            items[:] = fast
            config.hook.pytest_deselected(items=slow)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Tell the main process of pytest-xdist, which collects nothing itself."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_LEFT_OUT] = self._left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Note what the workers have left out, which is the same in each."""
        self._left_out = max(self._left_out, getattr(node, "workeroutput", {}).get(_LEFT_OUT, 0))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say how many tests were left out, and how to run them."""
        if self._left_out:
            terminalreporter.write_line(f"{self._left_out} slow tests were left out. All tests: {ALL}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin of this session."""
    config.pluginmanager.register(Tiers(config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return 0 workers for ``-n auto`` if one file is named: starting them takes longer than most files."""
    paths = {str(argument).partition("::")[0] for argument in config.args}
    return 0 if len(paths) == 1 and Selection.of(config).files else None


def in_repository(path: Path) -> str:
    """Return a path in the repository, as ``times.json`` has it; other paths as they are."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
