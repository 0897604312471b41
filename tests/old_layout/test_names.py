"""What users import stays where it is."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from tests.old_layout.conftest import DATA

NAMES: dict[str, list[str]] = json.loads((DATA / "names.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", NAMES)
def test_every_public_name_is_still_there(package: str) -> None:
    module = import_module(package)
    missing = [name for name in NAMES[package] if not hasattr(module, name)]
    assert missing == []
    assert set(NAMES[package]) <= set(module.__all__)
