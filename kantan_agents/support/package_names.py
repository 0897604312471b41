"""Lazy names (PEP 562), and callable packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports its modules on first use.

    Importing a module then does not import its neighbors, which may need the SDK.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def __getattr__(name: str) -> Any:  # noqa: N807
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(home)
        except ImportError as error:
            from kantan_agents.errors import ExtraMissingError

            if isinstance(error, ExtraMissingError):
                return MissingName(name, package, error)
            raise
        # A subpackage may be callable, and be the function of its name.
        value = module if home == f"{package}.{name}" and callable(module) else getattr(module, name)
        if not isinstance(value, MissingName):  # the extra may be installed later, in a notebook
            setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *home_of})

    return __getattr__, __dir__


class MissingName(type):
    """The value of a public name whose extra is missing.

    So ``from kantan_agents import *``, ``hasattr`` and ``pydoc`` work in a plain install. Each use raises the
    error of the extra, an attribute an ``AttributeError``.
    """

    _error: Exception

    def __new__(cls, name: str, package: Any, error: Any) -> MissingName:
        """A subclass has bases instead of a package, and raises."""
        if not isinstance(package, str):
            raise package[0]._error
        return super().__new__(cls, name, (), {"__module__": package, "__doc__": str(error), "_error": error})

    def __init__(cls, *_: object) -> None:
        """Everything is in the class."""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        """Raise the error of the missing extra."""
        raise cls._error

    def __getattr__(cls, name: str) -> NoReturn:
        """Raise with the message of the missing extra."""
        # The attributes are unknown, and `hasattr` and `getattr` with a default must work.
        raise AttributeError(str(cls._error), name=name, obj=cls) from cls._error


def make_callable(package: str) -> None:
    """Make a package callable as the function in it that has its name.

    ``from kantan_agents.lab import replay`` finds the package, because importing it binds it in the parent.
    """
    name = package.rpartition(".")[2]

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(self, name)(*arguments, **options)

    sys.modules[package].__class__ = CallablePackage
