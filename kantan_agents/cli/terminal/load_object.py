"""Finds the Python object that ``MODULE:NAME`` names."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from kantan_agents.cli.terminal.failures import describe
from kantan_agents.errors import InvalidOptionError


def load_object(name: str, option: str, example: str) -> Any:
    """Import a module, also from the current directory, and return the object in it.

    Args:
        name: ``MODULE:NAME``.
        option: The option that it was given for.
        example: A name of this form, for the error.

    Raises:
        InvalidOptionError: E75, there is no such module or name, or importing it fails.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        reason = f"{name}: it must be MODULE:NAME, such as {example}"
        raise InvalidOptionError(option=option, reason=reason)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module_name)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except Exception as error:
        raise InvalidOptionError(option=option, reason=f"{name}: {describe(error)}") from error
    return found
