"""What a provider does with a reply of its model that cannot be read (spec protocol 7)."""

from __future__ import annotations

from typing import Literal

from kantan_agents.errors import AgentPainException, InvalidOptionError
from kantan_agents.protocol.types import ContentSegment, ProviderResponse

OnUnreadable = Literal["raise", "text"]
"""``"raise"``: the run ends with E51. ``"text"``: the reply is a text that says what is wrong."""


def unreadable(provider: str, reason: str, on_unreadable: OnUnreadable = "raise") -> ProviderResponse:
    """Say that a model's reply cannot be read, in the way the provider's user has chosen.

    Args:
        provider: Name of the provider.
        reason: What is wrong with the reply.
        on_unreadable: ``"raise"``, or ``"text"`` for an answer of one text segment; its metadata has
            ``{"error": {"code": "E51", "reason": ...}}``.

    Raises:
        AgentPainException: E51, with ``"raise"``.
        InvalidOptionError: E75, ``on_unreadable`` is neither.
    """
    pain = AgentPainException(provider=provider, reason=reason)
    if on_unreadable == "raise":
        raise pain
    if on_unreadable != "text":
        reason = f'must be "raise" or "text", not {on_unreadable!r}'
        raise InvalidOptionError(option="on_unreadable", reason=reason)
    error = {"code": pain.code, "provider": provider, "reason": reason}
    return ProviderResponse([ContentSegment.of_text(str(pain))], {"error": error})
