"""A package whose ``__init__`` is deferred runs it once, when a name of it is first used."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kantan_agents.cli.deferred_init import defer_init

INIT = """
from pathlib import Path
from .inner import VALUE

with Path(__file__).with_name("runs").open("a") as runs:
    runs.write(".")
if Path(__file__).with_name("broken").exists():
    raise ImportError("something is missing")
NAME = VALUE + 1
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "package_to_defer"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT)
    (folder / "inner.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in ("package_to_defer", "package_to_defer.inner"):
        sys.modules.pop(name, None)


def imported(name: str = "package_to_defer") -> Any:
    return importlib.import_module(name)


def runs(package: Path) -> int:
    file = package / "runs"
    return len(file.read_text()) if file.exists() else 0


def test_a_module_of_it_is_imported_without_its_init(package: Path) -> None:
    defer_init("package_to_defer")
    assert imported("package_to_defer.inner").VALUE == 1
    assert imported().inner is imported("package_to_defer.inner")
    assert runs(package) == 0


def test_the_init_runs_once_when_a_name_is_used(package: Path) -> None:
    defer_init("package_to_defer")
    module = imported()
    assert module.NAME == module.NAME == 2
    assert runs(package) == 1
    assert type(module) is ModuleType
    assert imported() is module


def test_a_name_that_it_lacks_is_missing(package: Path) -> None:
    defer_init("package_to_defer")
    assert not hasattr(imported(), "OTHER")
    with pytest.raises(AttributeError, match="'package_to_defer' has no attribute 'OTHER'"):
        imported().OTHER  # noqa: B018
    assert runs(package) == 1


def test_names_used_by_several_threads_run_it_once(package: Path) -> None:
    defer_init("package_to_defer")
    module, found = imported(), []
    at_once = threading.Barrier(8)

    def use() -> None:
        at_once.wait()
        found.append(module.NAME)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 8
    assert runs(package) == 1


def test_an_init_that_fails_is_tried_again(package: Path) -> None:
    defer_init("package_to_defer")
    (package / "broken").touch()
    with pytest.raises(ImportError, match="something is missing"):
        imported().NAME  # noqa: B018
    (package / "broken").unlink()
    assert imported().NAME == 2


def test_a_package_that_is_imported_stays_as_it_is(package: Path) -> None:
    module = imported()
    defer_init("package_to_defer")
    assert imported() is module
    assert runs(package) == 1


def test_a_package_that_is_not_installed_is_still_missing() -> None:
    defer_init("no_such_package")
    with pytest.raises(ModuleNotFoundError):
        imported("no_such_package")
