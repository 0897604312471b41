"""Completion values without shell code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_WORD: Final = re.compile(r"[\w.@+/][\w.@+/-]*")
_NO_TEXT: Final = re.compile(r"[^\w.,/ -]+")
_LONGEST: Final = 60


def shell_words(choices: Iterable[tuple[str, str]], incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the choices that start with ``incomplete``.

    Names come from unknown authors, and the zsh script evaluates the output: shell metacharacters are
    omitted.
    """
    for value, explanation in choices:
        if value.startswith(incomplete) and _WORD.fullmatch(value):
            yield value, " ".join(_NO_TEXT.sub(" ", explanation[: 4 * _LONGEST]).split())[:_LONGEST]
