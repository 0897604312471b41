"""Gemini behind Google's OpenAI-compatible API.

It enforces a JSON schema, but not beside tools: that is HTTP 400, "Function calling with a response mime
type: 'application/json' is unsupported".
"""

from __future__ import annotations

from kantan_agents.structured.asking.families.family import Family
from kantan_agents.structured.asking.forms import FORCED_TOOL, NATIVE, PROMPT, TOOL

GOOGLE = Family(
    "google",
    providers=("google",),
    hosts=("generativelanguage.googleapis.com", "aiplatform.googleapis.com"),
    forms_beside_tools=(FORCED_TOOL, TOOL, NATIVE, PROMPT),
)
