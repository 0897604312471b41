"""``unreadable``: reports a reply that cannot be parsed (spec protocol 7)."""

from __future__ import annotations

from typing import Literal

from kantan_agents.errors import AgentPainException, InvalidOptionError
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse

OnUnreadable = Literal["raise", "text"]
"""``"raise"``: the run fails with E51. ``"text"``: the response is text that describes the problem."""


def unreadable(provider: str, reason: str, on_unreadable: OnUnreadable = "raise") -> ProviderResponse:
    """Report that a model's reply cannot be parsed: raise E51, or return a response that describes it.

    A provider calls this so that its user decides what happens to malformed replies.

    Args:
        provider: Name of the provider.
        reason: What is wrong with the reply.
        on_unreadable: ``"raise"`` to raise, ``"text"`` to return a response.

    Raises:
        AgentPainException: E51, if ``on_unreadable`` is ``"raise"``.
        InvalidOptionError: E75, ``on_unreadable`` is neither.

    Returns:
        A response with a single text segment; its metadata is
        ``{"error": {"code": "E51", "provider": ..., "reason": ...}}``.
    """
    pain = AgentPainException(provider=provider, reason=reason)
    if on_unreadable == "raise":
        raise pain
    if on_unreadable != "text":
        reason = f'must be "raise" or "text", not {on_unreadable!r}'
        raise InvalidOptionError(option="on_unreadable", reason=reason)
    error = {"code": pain.code, "provider": provider, "reason": reason}
    return ProviderResponse([ContentSegment.of_text(str(pain))], {"error": error})
