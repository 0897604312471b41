"""The filters of a search: validation, and kantan-llm's query."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NoReturn, TypedDict

import attrs
from kantan_llm.tracing import TraceQuery

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int

_LARGEST_INTEGER = 2**63 - 1
# JSON escapes these characters, and SQLite compares escaped keys. Some versions of SQLite lack the empty key.
_ESCAPED_IN_JSON = re.compile(r'["\\\x00-\x1f]|^$')


class TraceFilters(TypedDict, total=False):
    """The filters of ``TraceStore.traces``, as keyword arguments."""

    keywords: Sequence[str]
    metadata: Mapping[str, Any] | None
    agent: str | None
    prompt: str | None
    version: str | None
    tool: str | None
    has_error: bool | None
    has_failed: bool | None
    has_denial: bool | None
    has_cut_answer: bool | None
    rubric_below: float | None
    started_from: datetime | None
    started_to: datetime | None


@attrs.frozen
class Filters:
    """The filters of one search; a trace must match all.

    Case, width and the encoding of accents do not matter in ``keywords``; no character is a wildcard.
    ``has_failed=False`` finds runs that ended without an error: unfinished runs match neither.
    """

    keywords: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    tool: str | None = None
    has_error: bool | None = None
    has_failed: bool | None = None
    has_denial: bool | None = None
    has_cut_answer: bool | None = None
    rubric_below: float | None = None
    started_from: datetime | None = None
    started_to: datetime | None = None

    @property
    def has_special_keys(self) -> bool:
        """Whether SQLite cannot look up a metadata key."""
        return any(_ESCAPED_IN_JSON.search(key) for key in self.metadata)

    @property
    def needs_views(self) -> bool:
        """Whether the search creates views on its connection."""
        return self.has_failed is not None or self.query() is not None

    def query(self) -> TraceQuery | None:
        """Return kantan-llm's query without keywords; None if it matches all."""
        # A failed run has a span with an error, which kantan-llm finds faster.
        has_error = self.has_error if self.has_error is not None else self.has_failed or None
        if not self.metadata and has_error is None and self.started_from is None and self.started_to is None:
            return None
        return TraceQuery(
            metadata={self._json_key(key): value for key, value in self.metadata.items()} or None,
            has_error=has_error,
            started_from=self.started_from,
            started_to=self.started_to,
        )

    def _json_key(self, key: str) -> str:
        # Quoted, "a.b" is one key, not the key b inside a.
        return key if self.has_special_keys else f'"{key}"'


def checked_filters(
    *,
    keywords: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    agent: str | None = None,
    prompt: str | None = None,
    version: str | None = None,
    tool: str | None = None,
    has_error: bool | None = None,
    has_failed: bool | None = None,
    has_denial: bool | None = None,
    has_cut_answer: bool | None = None,
    rubric_below: float | None = None,
    started_from: datetime | None = None,
    started_to: datetime | None = None,
) -> Filters:
    """Validate the filters (E75); agent, prompt and version become metadata."""
    if isinstance(keywords, str) or not isinstance(keywords, Sequence):
        _reject("keywords", f"must be a list of words, not {type(keywords).__name__}")
    for keyword in keywords:
        check_text("keywords", keyword)
    if tool is not None:
        check_text("tool", tool)
    flags = {
        "has_error": has_error,
        "has_failed": has_failed,
        "has_denial": has_denial,
        "has_cut_answer": has_cut_answer,
    }
    for name, flag in flags.items():
        if flag is not None and not isinstance(flag, bool):
            _reject(name, f"must be True, False or None, not {type(flag).__name__}")
    if rubric_below is not None:
        check_number("rubric_below", rubric_below)
    for name, time in (("started_from", started_from), ("started_to", started_to)):
        check_time(name, time)
    return Filters(
        keywords=tuple(keywords),
        metadata=_checked_metadata(metadata, agent=agent, prompt=prompt, version=version),
        tool=tool,
        has_error=has_error,
        has_failed=has_failed,
        has_denial=has_denial,
        has_cut_answer=has_cut_answer,
        rubric_below=rubric_below,
        started_from=started_from,
        started_to=started_to,
    )


def check_limit(limit: int | None) -> None:
    """Raise E75 unless it is a positive int or None."""
    if limit is not None:
        checked_int("limit", limit, 1)


def check_time(name: str, time: datetime | None) -> None:
    """Raise E75 unless it is a datetime or None."""
    if time is not None and not isinstance(time, datetime):
        _reject(name, f"must be a datetime, not {type(time).__name__}")
    if time is not None and time.tzinfo is not None:
        try:
            time.astimezone(timezone.utc)
        except OverflowError:
            _reject(name, f"{time} cannot be converted to UTC")


def check_number(name: str, number: float) -> None:
    """Raise E75 unless it is a number."""
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or math.isnan(number):
        _reject(name, f"must be a number, not {number!r}")


def check_text(option: str, text: Any) -> None:
    """Raise E75 unless it is a str that SQLite accepts."""
    if not isinstance(text, str):
        _reject(option, f"must be a str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        _reject(option, f"{text!r} cannot be encoded as UTF-8")


def _checked_metadata(metadata: Mapping[str, Any] | None, **standard: str | None) -> dict[str, Any]:
    if metadata is not None and not isinstance(metadata, Mapping):
        _reject("metadata", f"must be a mapping, not {type(metadata).__name__}")
    wanted = dict(metadata or {})
    for key, value in wanted.items():
        _check_value(key, value)
    for name, value in standard.items():
        if value is None:
            continue
        check_text(name, value)
        key = f"prompt_{name}" if name == "version" else f"{name}_name"
        if wanted.setdefault(key, value) != value:
            _reject(name, f"is {value!r}, but metadata has {wanted[key]!r} for {key}")
    return wanted


def _check_value(key: Any, value: Any) -> None:
    check_text("metadata", key)
    if isinstance(value, str):
        check_text("metadata", value)
    elif isinstance(value, int):
        if abs(value) > _LARGEST_INTEGER:
            _reject("metadata", f"{key}: SQLite has no integer as large as {value}")
    elif value is not None and not isinstance(value, float):
        kind = type(value).__name__
        _reject("metadata", f"{key}: must be a str, int, float, bool or None, not {kind}")


def _reject(option: str, reason: str) -> NoReturn:
    raise InvalidOptionError(option=option, reason=reason)
