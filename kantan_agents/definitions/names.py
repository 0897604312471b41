"""When two names of agents are the same name."""

from __future__ import annotations

import functools
import unicodedata


@functools.lru_cache(maxsize=8192)
def name_key(name: str) -> str:
    """Return what two names share that are the same but for case and separators.

    ``Code Reviewer``, ``code-reviewer`` and ``codeReviewer`` are one name; ``C`` and ``C++`` are two.
    Spaces, dashes, ``_``, ``.``, ``/``, ``:`` and characters that cannot be seen are left out, and
    full-width letters count as the plain ones. A name made of nothing else keeps what it is made of.

    Args:
        name: The name of an agent, as a file or a caller writes it.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(char for char in folded if not _separates(char)) or folded


def _separates(char: str) -> bool:
    return char in "_./:" or char.isspace() or unicodedata.category(char) in {"Pd", "Cf", "Cc"}
