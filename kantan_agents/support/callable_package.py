"""Packages that have the name of their function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(package: str, function: Callable[..., Any]) -> None:
    """Let a package be called as its function.

    Importing a package binds it to its name in the parent. ``from kantan_agents.lab import replay`` then
    finds the package instead of the function of the same name.

    Args:
        package: ``__name__`` of the package.
        function: What a call of the package calls.
    """

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return function(*arguments, **options)

    sys.modules[package].__class__ = CallablePackage
