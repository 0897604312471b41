"""Template markers in instructions: ``{{ $ctx.user.name }}`` and ``{{ $env.NAME }}`` (spec 8.1).

A text is compiled once; rendering walks its parts once, so a value that itself looks like a marker is
never rendered again, and only mapping keys and list indexes are followed, never attributes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from kantan_agents.errors import RenderError

# Braces end a path, so the scan is linear in the length of the text.
_MARKER = re.compile(r"\{\{\s*\$(ctx|env)(?:\.([^{}]*)|\s*)\}\}")
_INDEX = re.compile(r"[0-9]{1,18}")

_UNDEFINED = object()


@attrs.frozen
class Marker:
    """One ``{{ ... }}`` of a template: where its value comes from and how it stands in the text."""

    source: str
    path: str
    expression: str

    def value(self, context: Mapping[str, Any], allow_env: bool) -> str:
        """Return the text that replaces this marker; undefined is the empty string."""
        if self.source == "env":
            return os.environ.get(self.path, "") if allow_env else ""
        try:
            found = _look_up(context, self.path)
            return "" if found is _UNDEFINED else str(found)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise RenderError(expression=self.expression, reason=reason) from error


def _look_up(context: Mapping[str, Any], path: str) -> Any:
    # A key that itself contains dots is found as it is: 0.1.x knew no nesting, only such keys.
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
    """Split ``text`` into literal strings and markers, in order; a text is compiled once."""
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
            ``{{ $env.NAME }}`` reads an environment variable. Anything else in braces stays as it is.
        context: The run's context.
        allow_env: Whether ``$env`` is filled; otherwise it is the empty string.

    Raises:
        RenderError: E77, a value raised when it was looked up or made into a str.

    Returns:
        The text with every marker replaced once (spec 8.1).
    """
    parts = compile_template(text)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    values = context if context is not None else {}
    return "".join([part if isinstance(part, str) else part.value(values, allow_env) for part in parts])
