"""Reads docstrings as the library writes them: paragraphs, then attributes."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple


class Documented(NamedTuple):
    """The parts of a docstring.

    Attributes:
        paragraphs: What it says, apart from the fix.
        fix: The paragraph that starts with "Fix:", without this word; empty if there is none.
        attributes: The description of each attribute.
    """

    paragraphs: list[str]
    fix: str
    attributes: dict[str, str]


def parts(documented: type) -> Documented:
    """Return the parts of the docstring that a class itself has."""
    text = inspect.cleandoc(vars(documented).get("__doc__") or "").replace("``", "`")
    text, _, listed = text.partition("\n\nAttributes:\n")
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    fixes = [
        paragraph[len("Fix: ") :]
        for paragraph in paragraphs
        if paragraph.startswith("Fix: ")
    ]
    return Documented(
        [paragraph for paragraph in paragraphs if not paragraph.startswith("Fix: ")],
        " ".join(fixes),
        {
            name: " ".join(described.split())
            for name, described in re.findall(
                r"^    (\w+): (.+(?:\n     .+)*)", listed, re.MULTILINE
            )
        },
    )


def code(text: str) -> str:
    """Return a string as a code span, even if it has backticks."""
    fence = "``" if "`" in text else "`"
    space = " " if text.startswith("`") or text.endswith(("`", "` ")) else ""
    return f"{fence}{space}{text}{space}{fence}"
