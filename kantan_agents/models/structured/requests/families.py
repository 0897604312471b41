"""Forms of a structured output request by provider family.

For a new provider, define a ``Family`` with its reasons, and list it in ``FAMILIES``.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

import attrs

from kantan_agents.models.structured.requests.forms import (
    EXAMPLE,
    FORCED_TOOL,
    JSON_OBJECT,
    JSON_OBJECT_OF_SCHEMA,
    NATIVE,
    PROMPT,
    TOOL,
    Form,
)


@attrs.frozen(eq=False)
class Family:
    """Providers that handle structured output alike.

    ``providers`` are kantan-llm's names. ``hosts`` are suffixes, for other clients. ``forms`` are in order of
    preference.
    """

    name: str
    providers: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    forms: tuple[Form, ...] = (NATIVE, FORCED_TOOL, TOOL, PROMPT)
    forms_beside_tools: tuple[Form, ...] = attrs.field()

    @forms_beside_tools.default
    def _same_forms(self) -> tuple[Form, ...]:
        return self.forms

    def answers_at(self, base_url: str) -> bool:
        """Return whether the URL is a provider's."""
        host = urlsplit(base_url).hostname or ""
        return any(host == end or host.endswith(f".{end}") for end in self.hosts)


# ``structured/schemas/strict.py`` adapts the schema to strict mode. An unsuitable one is HTTP 400,
# ``invalid_json_schema``.
OPENAI = Family(
    "openai",
    providers=("openai",),
    hosts=("openai.com", "openai.azure.com"),
    forms=(NATIVE, FORCED_TOOL, PROMPT),
)

# No schema together with tools: HTTP 400, "Function calling with a response mime type: 'application/json' is
# unsupported".
GOOGLE = Family(
    "google",
    providers=("google",),
    hosts=("generativelanguage.googleapis.com", "aiplatform.googleapis.com"),
    forms_beside_tools=(FORCED_TOOL, TOOL, NATIVE, PROMPT),
)

# The OpenAI-compatible API silently ignores ``response_format`` and ``strict``. The tool forms mention no
# format: the model would write prose instead of the call.
ANTHROPIC = Family(
    "anthropic",
    providers=("anthropic",),
    hosts=("anthropic.com",),
    forms=(FORCED_TOOL, TOOL, PROMPT),
)

# ``json_schema`` is HTTP 400 or 422, "This response_format type is unavailable now". JSON mode requires the
# word JSON in the prompt, returns white space for anything else, and calls no tools. The reasoning model
# rejects a forced tool.
DEEPSEEK = Family(
    "deepseek",
    providers=("deepseek",),
    hosts=("deepseek.com",),
    forms=(FORCED_TOOL, TOOL, JSON_OBJECT, PROMPT),
    forms_beside_tools=(FORCED_TOOL, TOOL, PROMPT),
)

# Ollama, LM Studio, llama.cpp, vLLM. A schema becomes a grammar for the whole reply and prevents tool calls,
# so with tools it follows the tool forms. If a grammar cannot express it, it is a server error or not
# enforced. Ollama ignores `tool_choice`, and returns HTTP 400, "does not support tools", for models without a
# tool template. llama-cpp-python ignores `json_schema` but takes a schema in JSON mode. Small models need the
# example.
LOCAL = Family(
    "local",
    providers=("ollama", "lmstudio", "compat"),
    forms=(NATIVE, FORCED_TOOL, TOOL, JSON_OBJECT_OF_SCHEMA, PROMPT, EXAMPLE),
    forms_beside_tools=(FORCED_TOOL, TOOL, NATIVE, PROMPT),
)

# A custom provider that supports schemas declares it; others ignore them.
PROVIDER = Family("provider", providers=("provider",), forms=(FORCED_TOOL, TOOL, PROMPT))
SCHEMA_PROVIDER = Family("schema provider", providers=("schema provider",))

# Other OpenAI-compatible APIs vary, so all forms are tried, the most reliable first.
UNKNOWN = Family("unknown")

FAMILIES = (OPENAI, GOOGLE, ANTHROPIC, DEEPSEEK, LOCAL, PROVIDER, SCHEMA_PROVIDER, UNKNOWN)


@lru_cache(maxsize=256)
def family_of(provider: str | None, base_url: str) -> Family:
    """Return a provider's family, by URL or name."""
    # A client for OpenAI's API may point to any host.
    for family in FAMILIES:
        if family.answers_at(base_url):
            return family
    return next((family for family in FAMILIES if provider in family.providers), UNKNOWN)
