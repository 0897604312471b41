"""Everything else that speaks an OpenAI API: vLLM, llama.cpp, OpenRouter, gateways, ...

What they support depends on the server's version and on the model behind it. They are asked, in the order of
how reliable the answer is.
"""

from __future__ import annotations

from kantan_agents.structured.asking.families.family import Family

UNKNOWN = Family("unknown")
