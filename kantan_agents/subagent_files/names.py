"""Names of agents and models in subagent files."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

MODELS: Mapping[str, Any] = MappingProxyType(
    {
        "inherit": None,
        "default": None,
        "sonnet": "claude-sonnet-4-5",
        "opus": "claude-opus-4-5",
        "haiku": "claude-haiku-4-5",
        "fable": "claude-fable-5",
        "best": "claude-opus-4-5",
        "opusplan": "claude-sonnet-4-5",
        "claude-sonnet": "claude-sonnet-4-5",
        "claude-opus": "claude-opus-4-5",
        "claude-haiku": "claude-haiku-4-5",
        # In Kode, these are models of the user's settings.
        "main": None,
        "task": None,
        "reasoning": None,
        "quick": None,
    }
)
"""Short model names in files, each with its full name; None is the default model."""

MODEL_REMARKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default": "default means the model of the program or of the agent that delegates, as inherit does",
        "best": "best is read as opus",
        "opusplan": "opusplan is read as sonnet, because there is no plan mode",
    }
)
"""Remarks on names that mean something else in Claude Code."""

LONG_CONTEXT: Final = re.compile(r"\s*\[1m\]\Z", re.IGNORECASE)
"""Claude Code's request for a larger context: ``opus[1m]``."""


def model_of(name: str | None, models: Mapping[str, Any] | None = None) -> Any:
    """Return the model for a name in a file, or None for the default model.

    The suffix ``[1m]`` is ignored, unless ``models`` has the name with the suffix.

    Args:
        name: The ``model`` of the file.
        models: Additional short names, in any case. They override ``MODELS``.
    """
    if name is None or not name.strip():
        return None
    written = name.strip()
    wanted = LONG_CONTEXT.sub("", written)
    for known in (models or {}, MODELS):
        folded = {key.casefold(): value for key, value in known.items()}
        for spelled in (written, wanted):
            if spelled in known:
                return known[spelled]
            if spelled.casefold() in folded:
                return folded[spelled.casefold()]
    return wanted or None


@functools.lru_cache(maxsize=8192)
def name_key(name: str) -> str:
    """Return a key that is equal for names that differ only in case and separators.

    ``Code Reviewer``, ``code-reviewer`` and ``codeReviewer`` are the same name; ``C`` and ``C++`` are not.
    Separators are spaces, dashes, ``_``, ``.``, ``/``, ``:`` and invisible characters; full-width letters
    equal plain ones. A name of separators only is its own key.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(char for char in folded if not _is_separator(char)) or folded


def _is_separator(char: str) -> bool:
    return char in "_./:" or char.isspace() or unicodedata.category(char) in {"Pd", "Cf", "Cc"}
