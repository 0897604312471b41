"""The limits of the library's own model calls, if the settings of a call have none."""

from __future__ import annotations

from typing import Final

MOST_TOKENS: Final = 8_192
"""Maximum tokens of an answer, including long reasoning."""

MOST_SECONDS: Final = 600.0
"""Timeout of a request, as the default of OpenAI's clients."""
