"""The keys of a subagent file."""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType
from typing import Final

KEY_OF: Final = MappingProxyType(
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
"""Field -> key, in writing order."""

_ALIASES: Final = {
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
    {key: field for field, key in KEY_OF.items()}
    | {key: field for field, keys in _ALIASES.items() for key in keys}
)
"""Key -> field. Keys are case-sensitive."""

LIMITS: Final = frozenset({"tools", "disallowed_tools"})
"""Fields that limit the tools. Their keys are recognized in every spelling."""

LISTS: Final = frozenset({"tools", "disallowed_tools", "skills"})
DATA: Final = frozenset({"context", "mcp_servers", "hooks"})
PROSE: Final = frozenset({"description", "initial_prompt"})

_SPELLED: Final = re.compile(r"[^\W\d_](?:[\w-]|[ \t\u00a0\u202f](?=\S))*")


def folded(key: str) -> str:
    """Return the lower-case letters and digits of a key, equal for all its spellings."""
    return "".join(char for char in unicodedata.normalize("NFKC", key).casefold() if char.isalnum())


_BY_LETTERS: Final = {folded(key): field for key, field in FIELD_OF.items()}
LIMIT_OF: Final = MappingProxyType(
    {letters: field for letters, field in _BY_LETTERS.items() if field in LIMITS}
)
"""Folded key -> field, of limits."""


def field_of(key: str) -> str | None:
    """Return the field of a key; limits may have any spelling."""
    field = FIELD_OF.get(key)
    if field is None and _SPELLED.fullmatch(key):
        field = LIMIT_OF.get(folded(key))
    return field


def looks_like(key: str) -> str | None:
    """Return the field whose folded key is the same, or None."""
    return _BY_LETTERS.get(folded(key))
