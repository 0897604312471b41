"""Default limits of the library's own model calls."""

from __future__ import annotations

from typing import Final

MOST_TOKENS: Final = 8_192
"""Per answer, including long reasoning."""

MOST_SECONDS: Final = 600.0
"""Per request, as the default of OpenAI's clients."""
