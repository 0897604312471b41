"""``Prompt``: versioned instructions (spec 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents.errors import EmptyPromptNameError, EmptyPromptTextError, InvalidOptionError
from kantan_agents.support.arguments import checked_bool


def hash_text(text: str) -> str:
    """SHA-256 of UTF-8 as 64 hexadecimal digits (spec 3.2)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_blank(value: object) -> bool:
    return not isinstance(value, str) or not value.strip()


@attrs.frozen
class Prompt:
    """Instructions with a name and a version, so that every recorded run leads back to its exact text.

    Args:
        name: Name of the prompt; the same for all its versions.
        version: Version of this wording, such as ``"v3"`` or ``"2026-11-20"``.
        text: The instructions; ``{{ $ctx.path }}`` placeholders are filled from the run's context.
        meta: Data to record with the prompt. Scalars (str, int, float, bool) go into the trace metadata as
            ``prompt_meta_<key>``; other values stay only here (spec 2.8).
        id: Identifier from a prompt registry; by default the hash of ``text`` (spec 3).
        strict: Whether a placeholder without a value fails the run with E48. Otherwise it renders as the
            empty string (spec 8.1). Has no effect on a custom ``renderer``.
        literal: Whether to use ``text`` unchanged, without filling placeholders or calling a custom
            ``renderer``: for text that others wrote, such as a prompt of an MCP server.

    Raises:
        EmptyPromptNameError: E3, ``name`` or ``version`` is empty or not a str.
        EmptyPromptTextError: E2, ``text`` is empty or not a str.
        InvalidOptionError: E75, ``meta`` is not a mapping, or ``strict`` or ``literal`` is not a bool.
    """

    name: str
    version: str
    text: str
    meta: Mapping[str, Any] | None = attrs.field(default=None, hash=False)
    id: str | None = None
    strict: bool = attrs.field(default=False, kw_only=True)
    literal: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if _is_blank(self.name) or _is_blank(self.version):
            raise EmptyPromptNameError
        if _is_blank(self.text):
            raise EmptyPromptTextError
        if self.meta is not None and not isinstance(self.meta, Mapping):
            raise InvalidOptionError(
                option="Prompt.meta", reason=f"must be a mapping or None, not {type(self.meta).__name__}"
            )

        checked_bool("Prompt.strict", self.strict)
        checked_bool("Prompt.literal", self.literal)

    def resolve_id(self) -> str:
        """Return ``id``, or the SHA-256 of ``text`` if it is missing (spec 3.1, 3.2)."""
        return self.id or hash_text(self.text)
