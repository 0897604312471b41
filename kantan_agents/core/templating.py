"""Placeholders in instructions: ``{{ $ctx.user.name }}`` and ``{{ $env.NAME }}`` (spec 8.1).

Inserted values are never rendered again. Paths follow mapping keys and list indexes, never attributes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import attrs
from cachetools import LRUCache

from kantan_agents.errors import RenderError, UndefinedPlaceholderError
from kantan_agents.support.log import get_logger
from kantan_agents.support.nearest import near_keys, nearest

KEY_VARIABLE = "KANTAN_AGENTS_KEY"
"""It signs paused runs; no template reads it."""

# Paths contain no braces, so the scan is linear.
_MARKER = re.compile(r"\{\{\s*\$(ctx|env)(?:\.([^{}]*)|\s*)\}\}")
_INDEX = re.compile(r"[0-9]{1,18}")

_UNDEFINED = object()
_SHORTEST = 4  # many shorter keys are one letter apart
_MOST = 256  # a mapping may be huge
_warned: LRUCache[Any, None] = LRUCache(maxsize=1024)
_log = get_logger("kantan_agents.run")


def without_markers(text: str) -> str:
    """Disable placeholders with an invisible character."""
    return _MARKER.sub(lambda found: f"{{{{\u2060{found[0][2:]}", text)


@attrs.frozen
class Marker:
    """One ``{{ ... }}`` of a template."""

    source: str
    path: str
    expression: str

    def value(self, context: Mapping[str, Any], allow_env: bool) -> str:
        """Return the replacement; empty if undefined."""
        if self.source == "env":
            # Windows ignores the case of these names.
            is_readable = allow_env and self.path.upper() != KEY_VARIABLE
            return os.environ.get(self.path, "") if is_readable else ""
        try:
            found = _look_up(context, self.path)
            if found is _UNDEFINED:
                _warn_if_mistyped(self, context)
                return ""
            return str(found)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise RenderError(expression=self.expression, reason=reason) from error

    def problem(self, context: Mapping[str, Any], allow_env: bool) -> str | None:
        """Return why the value is missing."""
        if self.source == "env":
            if self.path.upper() == KEY_VARIABLE:
                return "this variable is never readable"
            if not allow_env:
                return "environment variables are not allowed; create the agent with allow_env=True"
            return None if self.path in os.environ else f"the environment variable {self.path!r} is not set"
        if self.path in context:
            return None
        return _missing_key(context, self.path)


def _missing_key(context: Mapping[str, Any], path: str) -> str | None:
    stop = _stop(context, path)
    if stop is None:
        return None
    value, segment, place = stop
    if isinstance(value, Mapping):
        near = _nearest(segment, [key for key in value if isinstance(key, str)])
        hint = f"; the nearest key is {near!r}" if near is not None else ""
        return f"{place} has no key {segment!r}{hint}"
    if _is_list(value):
        return f"{place} is a list of {len(value)}, and has no index {segment!r}"
    return f"{place} is of type {type(value).__name__}, and has no key {segment!r}"


def _stop(context: Mapping[str, Any], path: str) -> tuple[Any, str, str] | None:
    """Return where a path ends: the last value, the missing key, its name."""
    value: Any = context
    parents: list[str] = []
    for segment in path.split("."):
        inner = _inner(value, segment)
        if inner is _UNDEFINED:
            return value, segment, f"$ctx.{'.'.join(parents)}" if parents else "the context"
        value = inner
        parents.append(segment)
    return None


def _nearest(name: str, names: list[str]) -> str | None:
    return nearest(name, names) if names else None


def _warn_if_mistyped(marker: Marker, context: Mapping[str, Any]) -> None:
    """Log once that a key is almost an existing one; missing keys are allowed (spec 8.1)."""
    if marker in _warned or (stop := _stop(context, marker.path)) is None:
        return
    value, segment, place = stop
    # Numbered keys, such as `line2`, are often missing. Other mappings than a dict may be slow to list.
    is_checked = value is context or isinstance(value, dict)
    if not is_checked or len(segment) < _SHORTEST or segment[-1].isdigit():
        return
    near = near_keys(list(islice(value, _MOST)), segment)
    if near:
        _warned[marker] = None
        _log.warning(
            f"{marker.expression} renders as empty text: {place} has no key {segment!r}; "
            f"the nearest key is {near[0]!r}"
        )


def _look_up(context: Mapping[str, Any], path: str) -> Any:
    # 0.1.x supported only flat keys, which may contain dots.
    if path in context:
        return context[path]
    value: Any = context
    for segment in path.split("."):
        value = _inner(value, segment)
        if value is _UNDEFINED:
            break
    return value


def _inner(value: Any, segment: str) -> Any:
    if isinstance(value, Mapping):
        if segment in value:  # not `get`, which a mapping may define differently
            return value[segment]
    elif _is_list(value) and _INDEX.fullmatch(segment) and int(segment) < len(value):
        return value[int(segment)]
    return _UNDEFINED


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


@lru_cache(maxsize=1024)
def compile_template(text: str) -> tuple[str | Marker, ...]:
    """Split ``text`` into strings and placeholders; cached."""
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


def values_read(text: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context values that ``text`` reads."""
    found: dict[str, Any] = {}
    for part in compile_template(text):
        if isinstance(part, Marker) and part.source == "ctx":
            value = _look_up(context, part.path)
            if value is not _UNDEFINED:
                found[part.path] = value
    return found


def render_strictly(
    text: str, context: Mapping[str, Any] | None, allow_env: bool = False, *, prompt: str = "the text"
) -> str:
    """Raise E48 for a placeholder without a value."""
    values = context if context is not None else {}
    for part in compile_template(text):
        if isinstance(part, str):
            continue
        try:
            problem = part.problem(values, allow_env)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise RenderError(expression=part.expression, reason=reason) from error
        if problem is not None:
            raise UndefinedPlaceholderError(expression=part.expression, prompt=prompt, reason=problem)
    return render_template(text, context, allow_env)


def render_template(text: str, context: Mapping[str, Any] | None, allow_env: bool = False) -> str:
    """Fill the placeholders of ``text``; the default renderer of an Agent (spec 8.1).

    ``{{ $ctx.a.b.0 }}`` follows mapping keys and list indexes; ``{{ $env.NAME }}`` needs ``allow_env``, or is
    empty. E77 if reading or converting a value fails.
    """
    parts = compile_template(text)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    values = context if context is not None else {}
    return "".join([part if isinstance(part, str) else part.value(values, allow_env) for part in parts])
