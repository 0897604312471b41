"""The keys an agent file may have, and the field of the definition each of them means."""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType
from typing import Final

WRITTEN: Final = MappingProxyType(
    {
        "name": "name",
        "description": "description",
        "tools": "tools",
        "disallowed_tools": "disallowedTools",
        "model": "model",
        "color": "color",
        "permission_mode": "permissionMode",
        "max_turns": "maxTurns",
        "skills": "skills",
        "mcp_servers": "mcpServers",
        "hooks": "hooks",
        "memory": "memory",
        "effort": "effort",
        "initial_prompt": "initialPrompt",
        "category": "category",
        "version": "version",
        "context": "context",
    }
)
"""The field -> the key it is written under, in the order of writing."""

_OTHERS: Final = {
    "tools": ("allowedTools", "allowed-tools", "allowed_tools"),
    "disallowed_tools": (
        "disallowed-tools",
        "disallowed_tools",
        "deniedTools",
        "denied-tools",
        "denied_tools",
    ),
    "model": ("model_name",),
    "permission_mode": ("permission-mode", "permission_mode"),
    "max_turns": ("max-turns", "max_turns"),
    "mcp_servers": ("mcp-servers", "mcp_servers"),
    "initial_prompt": ("initial-prompt", "initial_prompt"),
}

FIELD_OF: Final = MappingProxyType(
    {key: field for field, key in WRITTEN.items()}
    | {key: field for field, keys in _OTHERS.items() for key in keys}
)
"""Every key that means something -> the field it means. Keys are told by case."""

LIMITS: Final = frozenset({"tools", "disallowed_tools"})
"""Fields that limit what an agent may use. Their keys are known in every spelling."""

LISTS: Final = frozenset({"tools", "disallowed_tools", "skills"})
DATA: Final = frozenset({"context", "mcp_servers", "hooks"})
PROSE: Final = frozenset({"description", "initial_prompt"})
"""Fields people write sentences in."""

_SPELLED: Final = re.compile(r"[^\W\d_](?:[\w-]|[ \t\u00a0\u202f](?=\S))*")


def folded(key: str) -> str:
    """Return what the spellings of a key share: its letters and digits, in lower case."""
    return "".join(char for char in unicodedata.normalize("NFKC", key).casefold() if char.isalnum())


_BY_LETTERS: Final = {folded(key): field for key, field in FIELD_OF.items()}
LIMIT_OF: Final = MappingProxyType(
    {letters: field for letters, field in _BY_LETTERS.items() if field in LIMITS}
)
"""The letters of a key that limits tools -> its field."""


def field_of(key: str) -> str | None:
    """Return the field a key means: those that limit tools in any case, with dashes, blanks or without."""
    field = FIELD_OF.get(key)
    if field is None and _SPELLED.fullmatch(key):
        field = LIMIT_OF.get(folded(key))
    return field


def looks_like(key: str) -> str | None:
    """Return the field whose key has the same letters, None where there is none."""
    return _BY_LETTERS.get(folded(key))
