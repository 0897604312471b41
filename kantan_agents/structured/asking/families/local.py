"""Ollama and LM Studio: a JSON schema becomes a grammar, tools depend on the model.

A model without a template for tools is HTTP 400, "does not support tools". A schema the grammar cannot
express is an error of the server or, with some engines, not enforced at all.
"""

from __future__ import annotations

from kantan_agents.structured.asking.families.family import Family

LOCAL = Family("local", providers=("ollama", "lmstudio"))
