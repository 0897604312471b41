"""Values as messages show them: never long, and never an error of their own."""

from __future__ import annotations

import reprlib
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxfrozenset = 8


def shown(value: Any) -> str:
    """Return ``repr(value)``, cut short: what is given as a rule may be nested, or long, without end."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an int of thousands of digits
        return f"a very large {type(value).__name__}"


def path_step(key: Any) -> str:
    """Return a key as it stands in the path of a problem: a str as it is."""
    return key if isinstance(key, str) else shown(key)
