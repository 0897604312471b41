"""Values that a shell may complete, each with an explanation that no shell can take for code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_WORD: Final = re.compile(r"[\w.@+/][\w.@+/-]*")
_NO_TEXT: Final = re.compile(r"[^\w.,/ -]+")
_LONGEST: Final = 60


def shell_words(choices: Iterable[tuple[str, str]], incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the choices that begin with a text.

    Names and descriptions come from files that anybody may have written, and the script for zsh evaluates
    what the program prints. So a name with a character that means something to a shell is left out, and of a
    description only words remain.

    Args:
        choices: Pairs of a value and its explanation.
        incomplete: What was typed of the value.
    """
    for value, explanation in choices:
        if value.startswith(incomplete) and _WORD.fullmatch(value):
            yield value, " ".join(_NO_TEXT.sub(" ", explanation[: 4 * _LONGEST]).split())[:_LONGEST]
