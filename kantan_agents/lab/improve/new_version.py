"""Names the new version of a prompt."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_NUMBER: Final = re.compile(r"(?P<before>.*?)(?P<number>[0-9]{1,9})", re.DOTALL)


def next_version(version: str, taken: Collection[str]) -> str:
    """Return the name of the version after this one: ``v2`` after ``v1``, ``draft-2`` after ``draft``.

    Args:
        version: The version.
        taken: Names that other versions have.
    """
    numbered = _NUMBER.fullmatch(version)
    before, number = (f"{version}-", 1) if numbered is None else (numbered["before"], int(numbered["number"]))
    while True:
        number += 1
        name = f"{before}{number}"
        if name not in taken:
            return name
