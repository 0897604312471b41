"""Defers the ``__init__`` of an installed package."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any

_lock = RLock()


def defer_init(package: str) -> None:
    """Make the next import of a package run its ``__init__`` on first use of a name in it.

    Its modules can then be imported without the imports of its ``__init__``. It has no effect if the package
    is already imported or not installed.
    """
    with _lock:
        if package in sys.modules:
            return
        found = find_spec(package)
        if found is None or found.loader is None or found.submodule_search_locations is None:
            return
        module = module_from_spec(found)
        module.__class__ = _Deferred
        sys.modules[package] = module


class _Deferred(ModuleType):
    """A package before its ``__init__`` has run; afterwards an ordinary module."""

    def __getattr__(self, name: str) -> Any:
        with _lock:
            # Another thread has run it meanwhile, or this one is running it.
            if type(self) is _Deferred and "_running_init" not in vars(self):
                self._running_init = True
                try:
                    self.__spec__.loader.exec_module(self)  # type: ignore[union-attr]
                    self.__class__ = ModuleType  # type: ignore[assignment]
                finally:
                    del self._running_init
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
