"""``MODULE:NAME`` is found in the working directory, which takes the place of no package afterwards."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.errors import InvalidOptionError


def test_a_file_that_is_written_later_is_not_imported_instead_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    for name in ("the_office", "colorsys", "the_rest"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "the_office.py").write_text("agent = 3\n")
    assert load_object("the_office:agent", "--agent", "app:agent") == 3
    (tmp_path / "colorsys.py").write_text("written = True\n")
    (tmp_path / "the_rest.py").write_text("more = 4\n")
    importlib.invalidate_caches()
    assert not hasattr(importlib.import_module("colorsys"), "written")
    assert importlib.import_module("the_rest").more == 4  # the module's own are found
    with pytest.raises(InvalidOptionError):
        load_object("the_office:missing", "--agent", "app:agent")
    assert sys.path.count("") == 1 and sys.path[-1] == ""
    for name in ("the_office", "colorsys", "the_rest"):
        sys.modules.pop(name)
