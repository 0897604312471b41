"""Instructions and tools stored at the Gemini API."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kantan_agents.errors import ProviderRequestError
from kantan_agents.models.protocol.http.api import Api, UnreadableAnswerError, off_loop, parse_json
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.protocol")

_PATH: Final = "/v1beta/cachedContents"
_PREFIX: Final = ("systemInstruction", "tools", "toolConfig")
_SMALLEST: Final = 4_096
"""Minimum bytes of a stored prefix, for the API's minimum of 1,024 tokens.

Bytes: a Japanese character is about one token.
"""

_MOST: Final = 64
_MARGIN: Final = 0.9
_NOT_FOUND: Final = (403, 404)
_TEMPORARY: Final = (None, 408, 429)
_SERVER_ERROR: Final = 500
_PAUSE: Final = 60.0
"""Seconds until another attempt after a temporary error."""


@attrs.frozen
class _Entry:
    """A stored prefix; ``name`` is None if the API rejected it."""

    name: str | None
    expires: float


@attrs.frozen
class CachedRequest:
    """A request that refers to a stored prefix."""

    body: dict[str, Any]
    key: str


class GeminiCache:
    """Stores prefixes at the API, and again after ``seconds``."""

    def __init__(self, api: Api, model: str, seconds: float) -> None:
        self._api = api
        self._model = model
        self._seconds = seconds
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._creating: set[str] = set()

    async def shorten(
        self, body: Mapping[str, Any], headers: Mapping[str, str], size: int
    ) -> CachedRequest | None:
        """Return a request without its prefix, if possible."""
        prefix = {name: body[name] for name in _PREFIX if body.get(name)}
        if "cachedContent" in body or not ("systemInstruction" in prefix or "tools" in prefix):
            return None
        text = await off_loop(lambda: json.dumps(prefix, ensure_ascii=False, sort_keys=True).encode(), size)
        if len(text) < _SMALLEST:
            return None
        key = hashlib.sha256(text).hexdigest()
        entry = self._entries.get(key)
        if entry is None or entry.expires <= time.monotonic():
            if key in self._creating:  # another run stores it; this one does not wait
                return None
            entry = await self._create(key, prefix, headers, size)
        if entry.name is None:
            return None
        rest = {name: value for name, value in body.items() if name not in _PREFIX}
        return CachedRequest({**rest, "cachedContent": entry.name}, key)

    async def _create(
        self, key: str, prefix: Mapping[str, Any], headers: Mapping[str, str], size: int
    ) -> _Entry:
        expires = time.monotonic() + self._seconds * _MARGIN
        body = {"model": self._model, **prefix, "ttl": f"{self._seconds:g}s"}
        self._creating.add(key)
        try:
            content = await off_loop(lambda: json.dumps(body, ensure_ascii=False).encode(), size)
            entry = _Entry(_name_of(await self._api.post(_PATH, content, headers)), expires)
        except (ProviderRequestError, UnreadableAnswerError) as error:
            reason = error.reason if isinstance(error, ProviderRequestError) else self._api.redact(str(error))
            _log.warning("prefix_not_cached", provider=self._api.provider, reason=reason)
            status = error.status if isinstance(error, ProviderRequestError) else 0
            if status in _TEMPORARY or (status or 0) >= _SERVER_ERROR:
                wait = error.retry_after if isinstance(error, ProviderRequestError) else None
                expires = min(expires, time.monotonic() + max(wait or 0.0, _PAUSE))
            entry = _Entry(None, expires)
        finally:
            self._creating.discard(key)
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > _MOST:
            self._entries.popitem(last=False)  # it expires at the API
        return entry

    def forget(self, request: CachedRequest, error: ProviderRequestError) -> bool:
        """Forget a prefix that ``error`` reports missing."""
        is_about_it = "cachedcontent" in error.reason.lower().replace(" ", "").replace("_", "")
        if error.status not in _NOT_FOUND and not (error.status == 400 and is_about_it):  # noqa: PLR2004
            return False
        self._entries.pop(request.key, None)
        _log.warning("cached_prefix_lost", provider=self._api.provider, reason=error.reason)
        return True

    async def aclose(self) -> None:
        """Delete the stored prefixes."""
        entries, self._entries = self._entries, OrderedDict()
        for entry in entries.values():
            if entry.name is None or entry.expires <= time.monotonic():
                continue
            try:
                await self._api.delete(f"/v1beta/{entry.name}")
            except ProviderRequestError as error:
                _log.warning("cached_prefix_not_deleted", provider=self._api.provider, reason=error.reason)


def _name_of(data: bytes) -> str:
    created = parse_json(data)
    name = created.get("name") if isinstance(created, dict) else None
    if not isinstance(name, str) or not name.startswith("cachedContents/") or "?" in name or ".." in name:
        raise UnreadableAnswerError("it has no name of a cached content")
    return name
