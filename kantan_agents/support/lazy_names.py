"""Names of a package that are loaded on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
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
