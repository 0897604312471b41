"""An HTTP response of a model is closed to the end, even where a run is cancelled just then."""

from __future__ import annotations

from openai import AsyncOpenAI

from kantan_agents.support.connections import shield_closing


def close_to_the_end(client: AsyncOpenAI) -> None:
    """Have a client close its responses to the end; nothing if it is one that cannot be told."""
    hooks = getattr(getattr(client, "_client", None), "event_hooks", None)
    if isinstance(hooks, dict) and shield_closing not in hooks.setdefault("response", []):
        hooks["response"].append(shield_closing)
