"""Providers of the OpenStarry protocol (spec protocol).

One that takes a schema says so; every other would pass it over without a word, so it is not asked that way.
"""

from __future__ import annotations

from kantan_agents.structured.asking.families.family import Family
from kantan_agents.structured.asking.forms import FORCED_TOOL, PROMPT, TOOL

PROVIDER = Family("provider", providers=("provider",), forms=(FORCED_TOOL, TOOL, PROMPT))

SCHEMA_PROVIDER = Family("schema provider", providers=("schema provider",))
