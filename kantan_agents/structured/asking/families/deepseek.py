"""DeepSeek: a JSON object of any shape, no JSON schema.

``json_schema`` is HTTP 400 or 422, "This response_format type is unavailable now". JSON-object mode wants the
word JSON in the prompt, and answers with white space alone where the model wrote something else. Its
reasoning model refuses to be forced to a tool.
"""

from __future__ import annotations

from kantan_agents.structured.asking.families.family import Family
from kantan_agents.structured.asking.forms import FORCED_TOOL, JSON_OBJECT, PROMPT, TOOL

DEEPSEEK = Family(
    "deepseek",
    providers=("deepseek",),
    hosts=("deepseek.com",),
    forms=(FORCED_TOOL, TOOL, JSON_OBJECT, PROMPT),
    # Held to an object, a model would not call the other tools.
    forms_beside_tools=(FORCED_TOOL, TOOL, PROMPT),
)
