"""Pieces of reasoning and arguments in streams."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse


@attrs.frozen
class ReasoningPiece:
    """The model has written a piece of its reasoning, which is not part of the answer.

    Args:
        text: The piece.
    """

    text: str


@attrs.frozen
class ArgumentsPiece:
    """The model has written a piece of the arguments of a tool call; the whole call follows as a segment.

    Args:
        call_id: Id of the call, the same as in the segment.
        tool: Name of the tool.
        text: The piece of JSON text.
    """

    call_id: str
    tool: str
    text: str


Piece: TypeAlias = ReasoningPiece | ArgumentsPiece
"""Values that a provider may yield for display, in addition to the answer's segments."""

Streamed: TypeAlias = ContentSegment | ProviderResponse | Piece
"""Values that a provider may yield."""
