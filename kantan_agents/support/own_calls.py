"""The limits of the model calls that the library makes by itself, where the settings of a call have none."""

from __future__ import annotations

from typing import Final

MOST_TOKENS: Final = 8_192
"""The most tokens of an answer, with its reasoning: room for long thoughts."""

MOST_SECONDS: Final = 600.0
"""How long a request may take: as long as clients of OpenAI wait by default."""
