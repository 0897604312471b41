"""The scripts of docs/, which is a folder of pages and no package, as modules."""

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
    sys.modules[module.__name__] = module  # where dataclasses and NamedTuples look their names up
    spec.loader.exec_module(module)
    return module
