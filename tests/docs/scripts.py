"""Imports the scripts of docs/, which is not a package."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from .pages import ROOT


def load(name: str) -> ModuleType:
    """Import ``docs/<name>.py``."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses and NamedTuples look up their names there
    spec.loader.exec_module(module)
    return module
