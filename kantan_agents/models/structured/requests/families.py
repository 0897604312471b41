"""Provider families: which forms of a structured output request to try, in which order.

To add a provider, define its ``Family`` here, state the reason for its forms in a comment, and list it in
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
        hosts: Host name suffixes of its API, to recognize clients that kantan-llm did not create.
        forms: The forms to try, best first, without known failures.
        forms_beside_tools: The same for agents with tools or handoffs.
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


# The Responses API and chat completions both enforce the schema, which ``structured/schemas/strict.py``
# adapts to strict mode. An unsuitable schema is HTTP 400, ``invalid_json_schema``.
OPENAI = Family(
    "openai",
    providers=("openai",),
    hosts=("openai.com", "openai.azure.com"),
    forms=(NATIVE, FORCED_TOOL, PROMPT),
)

# Gemini's OpenAI-compatible API enforces a schema, but not with tools: HTTP 400, "Function calling with a
# response mime type: 'application/json' is unsupported".
GOOGLE = Family(
    "google",
    providers=("google",),
    hosts=("generativelanguage.googleapis.com", "aiplatform.googleapis.com"),
    forms_beside_tools=(FORCED_TOOL, TOOL, NATIVE, PROMPT),
)

# Claude's OpenAI-compatible API silently ignores ``response_format`` and ``strict``. Tools work. The
# instructions of the tool forms mention no format: the model would write prose instead of calling the final
# tool.
ANTHROPIC = Family(
    "anthropic",
    providers=("anthropic",),
    hosts=("anthropic.com",),
    forms=(FORCED_TOOL, TOOL, PROMPT),
)

# DeepSeek rejects ``json_schema`` with HTTP 400 or 422, "This response_format type is unavailable now". Its
# JSON mode requires the word JSON in the prompt, returns white space for anything else, and calls no tools.
# Its reasoning model rejects a forced tool.
DEEPSEEK = Family(
    "deepseek",
    providers=("deepseek",),
    hosts=("deepseek.com",),
    forms=(FORCED_TOOL, TOOL, JSON_OBJECT, PROMPT),
    forms_beside_tools=(FORCED_TOOL, TOOL, PROMPT),
)

# Local servers: Ollama, LM Studio, llama.cpp, vLLM. A JSON schema becomes a grammar for the whole reply and
# prevents tool calls, so with tools the schema form follows the tool forms. A schema that a grammar cannot
# express is a server error or is not enforced. Ollama ignores `tool_choice`, and returns HTTP 400, "does not
# support tools", for models without a tool template. llama-cpp-python ignores `json_schema` but takes a
# schema in its JSON mode. Small models need the example.
LOCAL = Family(
    "local",
    providers=("ollama", "lmstudio", "compat"),
    forms=(NATIVE, FORCED_TOOL, TOOL, JSON_OBJECT_OF_SCHEMA, PROMPT, EXAMPLE),
    forms_beside_tools=(FORCED_TOOL, TOOL, NATIVE, PROMPT),
)

# Custom providers. One that supports schemas declares it; others would silently ignore the schema.
PROVIDER = Family("provider", providers=("provider",), forms=(FORCED_TOOL, TOOL, PROMPT))
SCHEMA_PROVIDER = Family("schema provider", providers=("schema provider",))

# All other OpenAI-compatible APIs. Their support varies by server and model, so all forms are tried, the most
# reliable first.
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
