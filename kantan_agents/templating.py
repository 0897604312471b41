"""Template markers in instructions: ``{{ $ctx.user.name }}`` and ``{{ $env.NAME }}`` (spec 8.1).

Each text is compiled once. Inserted values are never rendered again, even if they look like markers. Paths
follow mapping keys and list indexes, never attributes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from kantan_agents.errors import RenderError
from kantan_agents.support.key_variable import KEY_VARIABLE

# A path cannot contain braces, so the scan is linear in the length of the text.
_MARKER = re.compile(r"\{\{\s*\$(ctx|env)(?:\.([^{}]*)|\s*)\}\}")
_INDEX = re.compile(r"[0-9]{1,18}")

_UNDEFINED = object()


@attrs.frozen
class Marker:
    """One ``{{ ... }}`` of a template: the source of its value and its text in the template."""

    source: str
    path: str
    expression: str

    def value(self, context: Mapping[str, Any], allow_env: bool) -> str:
        """Return the text that replaces this marker; an undefined value renders as the empty string."""
        if self.source == "env":
            # Windows ignores the case of these names.
            is_readable = allow_env and self.path.upper() != KEY_VARIABLE
            return os.environ.get(self.path, "") if is_readable else ""
        try:
            found = _look_up(context, self.path)
            return "" if found is _UNDEFINED else str(found)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise RenderError(expression=self.expression, reason=reason) from error


def _look_up(context: Mapping[str, Any], path: str) -> Any:
    # A key may itself contain dots: 0.1.x supported only such flat keys.
    if path in context:
        return context[path]
    value: Any = context
    for segment in path.split("."):
        if isinstance(value, Mapping):
            if segment not in value:
                return _UNDEFINED
            value = value[segment]
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
            if not _INDEX.fullmatch(segment) or int(segment) >= len(value):
                return _UNDEFINED
            value = value[int(segment)]
        else:
            return _UNDEFINED
    return value


@lru_cache(maxsize=1024)
def compile_template(text: str) -> tuple[str | Marker, ...]:
    """Split ``text`` into literal strings and markers, in order; results are cached."""
    parts: list[str | Marker] = []
    end = 0
    for match in _MARKER.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        parts.append(Marker(match[1], (match[2] or "").strip(), match[0]))
        end = match.end()
    if end < len(text) or not parts:
        parts.append(text[end:])
    return tuple(parts)


def render_template(text: str, context: Mapping[str, Any] | None, allow_env: bool = False) -> str:
    """Fill the markers of ``text``; the default renderer of an Agent.

    Args:
        text: A template. ``{{ $ctx.a.b.0 }}`` follows mapping keys and list indexes;
            ``{{ $env.NAME }}`` reads an environment variable. Any other text in braces is unchanged.
        context: The run's context.
        allow_env: Whether ``$env`` markers are filled; otherwise they render as the empty string.

    Raises:
        RenderError: E77, looking a value up or converting it to a str raised an error.

    Returns:
        The text with every marker replaced (spec 8.1).
    """
    parts = compile_template(text)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    values = context if context is not None else {}
    return "".join([part if isinstance(part, str) else part.value(values, allow_env) for part in parts])
