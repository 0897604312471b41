"""Table of provider families: which forms of a structured output request to try, and in which order.

A new provider gets a ``Family`` here, with the reason for its forms in a comment, and a place in
``FAMILIES``.
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
    """Providers that handle requests for structured output in the same way.

    Attributes:
        name: Name of the family in documentation and traces.
        providers: kantan-llm's names of its providers.
        hosts: Host name suffixes of its API, to recognise clients that kantan-llm did not create.
        forms: The forms to try, best first, without those known to fail.
        forms_beside_tools: The forms to try if the agent has tools or hand-offs.
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
        """Return whether the URL belongs to one of its providers."""
        host = urlsplit(base_url).hostname or ""
        return any(host == end or host.endswith(f".{end}") for end in self.hosts)


# The Responses API and chat completions both enforce the schema. ``structured/schemas/strict.py`` adapts it
# to strict mode. The provider rejects an unsuitable one with HTTP 400, ``invalid_json_schema``.
OPENAI = Family(
    "openai",
    providers=("openai",),
    hosts=("openai.com", "openai.azure.com"),
    forms=(NATIVE, FORCED_TOOL, PROMPT),
)

# Gemini's OpenAI-compatible API enforces a schema, but not together with tools: HTTP 400, "Function calling
# with a response mime type: 'application/json' is unsupported".
GOOGLE = Family(
    "google",
    providers=("google",),
    hosts=("generativelanguage.googleapis.com", "aiplatform.googleapis.com"),
    forms_beside_tools=(FORCED_TOOL, TOOL, NATIVE, PROMPT),
)

# Claude's OpenAI-compatible API silently ignores ``response_format`` and ``strict``, but tools work. The
# instructions of the tool forms mention no output format, because the model would then write text instead of
# calling the final tool.
ANTHROPIC = Family(
    "anthropic",
    providers=("anthropic",),
    hosts=("anthropic.com",),
    forms=(FORCED_TOOL, TOOL, PROMPT),
)

# DeepSeek has no JSON schema: ``json_schema`` is HTTP 400 or 422, "This response_format type is unavailable
# now". Its JSON mode requires the word JSON in the prompt, and returns white space if the model writes
# anything else. Its reasoning model rejects a forced tool. In JSON mode, a model would not call the agent's
# own tools.
DEEPSEEK = Family(
    "deepseek",
    providers=("deepseek",),
    hosts=("deepseek.com",),
    forms=(FORCED_TOOL, TOOL, JSON_OBJECT, PROMPT),
    forms_beside_tools=(FORCED_TOOL, TOOL, PROMPT),
)

# Servers that people run themselves: Ollama, LM Studio, llama.cpp, vLLM. They turn a JSON schema into a
# grammar for the whole reply, so no tool can be called beside one. With tools, the schema therefore comes
# after the tool forms, for an answer that came as a text. A schema that a grammar cannot express is a server
# error or, with some engines, not enforced. Ollama ignores `tool_choice`, and fails with HTTP 400, "does not
# support tools", if the model has no template for them. llama-cpp-python ignores `json_schema`, but takes a
# schema in its JSON mode, as llama.cpp did first. Small models need the example.
LOCAL = Family(
    "local",
    providers=("ollama", "lmstudio", "compat"),
    forms=(NATIVE, FORCED_TOOL, TOOL, JSON_OBJECT_OF_SCHEMA, PROMPT, EXAMPLE),
    forms_beside_tools=(FORCED_TOOL, TOOL, NATIVE, PROMPT),
)

# Custom providers of the OpenStarry protocol. One that supports schemas declares it; any other would silently
# ignore the schema.
PROVIDER = Family("provider", providers=("provider",), forms=(FORCED_TOOL, TOOL, PROMPT))
SCHEMA_PROVIDER = Family("schema provider", providers=("schema provider",))

# Every other OpenAI-compatible API: OpenRouter, gateways, your own SDK models, ... What they support depends
# on the server and the model, so all forms are tried, the most reliable first.
UNKNOWN = Family("unknown")

FAMILIES = (OPENAI, GOOGLE, ANTHROPIC, DEEPSEEK, LOCAL, PROVIDER, SCHEMA_PROVIDER, UNKNOWN)


@lru_cache(maxsize=256)
def family_of(provider: str | None, base_url: str) -> Family:
    """Return the family of a provider.

    Args:
        provider: kantan-llm's name of the provider, if kantan-llm created the client.
        base_url: URL of its API, which takes precedence over the name.
    """
    # A client for OpenAI's API may point to any host, so the host is the better evidence.
    for family in FAMILIES:
        if family.answers_at(base_url):
            return family
    return next((family for family in FAMILIES if provider in family.providers), UNKNOWN)
