"""Loads the object of ``MODULE:NAME``."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from kantan_agents.cli.terminal.failures import describe
from kantan_agents.errors import InvalidOptionError


def load_object(name: str, option: str, example: str) -> Any:
    """Import a module, and return the object in it."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        reason = f"{name}: it must be MODULE:NAME, such as {example}"
        raise InvalidOptionError(option=option, reason=reason)
    is_added = "" not in sys.path
    if is_added:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module_name)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except Exception as error:
        raise InvalidOptionError(option=option, reason=f"{name}: {describe(error)}") from error
    finally:
        if is_added:
            # A tool may write here. Later imports must not load a new file with the name of a package.
            with suppress(ValueError):
                sys.path.remove("")
            sys.path.append("")
    return found
