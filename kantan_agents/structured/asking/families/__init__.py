"""What kinds of providers do when they are asked for an output of a schema: data, one file a kind."""

from __future__ import annotations

from functools import lru_cache

from kantan_agents.structured.asking.families.anthropic import ANTHROPIC
from kantan_agents.structured.asking.families.deepseek import DEEPSEEK
from kantan_agents.structured.asking.families.family import Family
from kantan_agents.structured.asking.families.google import GOOGLE
from kantan_agents.structured.asking.families.local import LOCAL
from kantan_agents.structured.asking.families.openai import OPENAI
from kantan_agents.structured.asking.families.protocol import PROVIDER, SCHEMA_PROVIDER
from kantan_agents.structured.asking.families.unknown import UNKNOWN

FAMILIES = (OPENAI, GOOGLE, ANTHROPIC, DEEPSEEK, LOCAL, PROVIDER, SCHEMA_PROVIDER, UNKNOWN)


@lru_cache(maxsize=256)
def family_of(provider: str | None, base_url: str) -> Family:
    """Return the family a provider belongs to.

    Args:
        provider: kantan-llm's name of it, if the client came from there.
        base_url: Where its API is; decides where the name does not.
    """
    # A client for OpenAI's API may be pointed anywhere; whose host it is says more than who made it.
    for family in FAMILIES:
        if family.answers_at(base_url):
            return family
    return next((family for family in FAMILIES if provider in family.providers), UNKNOWN)


__all__ = ["FAMILIES", "Family", "family_of"]
