"""Claude behind Anthropic's OpenAI-compatible API.

``response_format`` and ``strict`` are ignored there without a word, tools work. So the answer is asked for as
the arguments of a final tool, and nothing else in the instructions speaks of an output format: told to write
something, the model writes it instead of calling the tool.
"""

from __future__ import annotations

from kantan_agents.structured.asking.families.family import Family
from kantan_agents.structured.asking.forms import FORCED_TOOL, PROMPT, TOOL

ANTHROPIC = Family(
    "anthropic",
    providers=("anthropic",),
    hosts=("anthropic.com",),
    forms=(FORCED_TOOL, TOOL, PROMPT),
)
