"""Packages whose names are loaded on first use (PEP 562), and packages that are called as their function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports its modules on first use.

    Importing a module of the package then does not import its neighbours, which may need the SDK. Type
    checkers read the same names from imports under ``TYPE_CHECKING``.

    Args:
        package: ``__name__`` of the package.
        homes: Full names of modules, each with the names that it has.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def __getattr__(name: str) -> Any:  # noqa: N807
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(home)
        # A subpackage may be callable, and be the function of its own name.
        value = module if home == f"{package}.{name}" and callable(module) else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *home_of})

    return __getattr__, __dir__


def make_callable(package: str) -> None:
    """Let a package be called as the function in it that has its name.

    Importing a package binds it to its name in the parent. ``from kantan_agents.lab import replay`` then
    finds the package instead of the function of the same name.

    Args:
        package: ``__name__`` of the package.
    """
    name = package.rpartition(".")[2]

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(self, name)(*arguments, **options)

    sys.modules[package].__class__ = CallablePackage
