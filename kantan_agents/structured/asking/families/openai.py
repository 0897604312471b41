"""OpenAI, over the Responses API and over chat completions.

The schema is enforced while the model writes. In its strict form every property must be listed as required
and nothing else may be allowed; schemas are adapted to that by ``structured/schemas/strict.py``. What it
refuses is answered with HTTP 400, ``invalid_json_schema``.
"""

from __future__ import annotations

from kantan_agents.structured.asking.families.family import Family
from kantan_agents.structured.asking.forms import FORCED_TOOL, NATIVE, PROMPT

OPENAI = Family(
    "openai",
    providers=("openai",),
    hosts=("openai.com", "openai.azure.com"),
    forms=(NATIVE, FORCED_TOOL, PROMPT),
)
