"""Fetches a page without cookies or credentials, within limits."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable

import anyio
import attrs
import httpx
from anyio import to_thread

from kantan_agents.errors import FetchError, URLRejectedError
from kantan_agents.models.tls import no_tls, tls_settings
from kantan_agents.support.invisible import without_invisible
from kantan_agents.toolkit.web.markdown import markdown_of
from kantan_agents.toolkit.web.pinned_transport import PinnedTransport
from kantan_agents.toolkit.web.urls import checked_url

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "user-agent": "kantan-agents",
    "accept": "text/markdown, text/html;q=0.9, text/plain;q=0.9, */*;q=0.5",
    "accept-encoding": "gzip",
}

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|x-yaml|toml|javascript|ecmascript|ld\+json|x-ndjson|sql)"
)
_META = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_SNIFFED = 1024
_ANY_COMPRESSION = 47  # zlib's sign for gzip or zlib
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Other codecs of Python take quadratic time, or interpret escapes.
_ENCODINGS = re.compile(
    r"utf-8|utf-16(?:-[lb]e)?|ascii|iso8859-\d+|cp125\d|cp866|cp932|cp949|koi8-[ru]|shift_jis|euc_(?:jp|kr)"
    r"|iso2022_jp|gb2312|gbk|gb18030|big5|mac-roman|tis-620"
)


@attrs.frozen
class FetchLimits:
    """The limits of a fetch; ``private`` allows non-public addresses."""

    seconds: float
    body_bytes: int
    private: bool


@attrs.frozen
class WebPage:
    """A page; ``url`` is its URL after redirects."""

    url: str
    status: int
    body: Body


@attrs.frozen
class Elsewhere:
    """A redirect that is not followed."""

    url: str
    target: str


async def fetch(url: str, may_follow: Callable[[str], bool], limits: FetchLimits) -> WebPage | Elsewhere:
    """Fetch a page; ``may_follow`` decides about redirects to the same host."""
    try:
        with anyio.fail_after(limits.seconds):
            return await _follow(checked_url(url), may_follow, limits)
    except TimeoutError as error:
        raise FetchError(url=url, reason=f"it took longer than {limits.seconds:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise FetchError(url=url, reason=f"{type(error).__name__}: {error}"[:300]) from error


async def _follow(
    url: httpx.URL, may_follow: Callable[[str], bool], limits: FetchLimits
) -> WebPage | Elsewhere:
    for _ in range(_MOST_REDIRECTS + 1):
        tls = await to_thread.run_sync(tls_settings) if url.scheme == "https" else no_tls()
        transport = PinnedTransport(tls, private=limits.private)
        # A new client has no cookies of an earlier request, and no settings of the environment.
        async with (
            httpx.AsyncClient(transport=transport, trust_env=False, timeout=limits.seconds) as client,
            client.stream("GET", url, headers=_HEADERS) as response,
        ):
            location = response.headers.get("location", "")
            if response.status_code not in _REDIRECTS or not location:
                body = await read_body(response, limits.body_bytes)
                seen = await to_thread.run_sync(_seen, body, str(url))
                return WebPage(str(url), response.status_code, seen)
        target = _target(url, location)
        if target is None or not _is_same_site(url, target) or not may_follow(str(target)):
            return Elsewhere(str(url), location if target is None else str(target))
        url = target
    raise FetchError(url=str(url), reason=f"it redirects more than {_MOST_REDIRECTS} times")


def _target(url: httpx.URL, location: str) -> httpx.URL | None:
    try:
        return checked_url(str(url.join(location)))
    except (httpx.InvalidURL, URLRejectedError, UnicodeError, ValueError):
        return None


def _is_same_site(url: httpx.URL, target: httpx.URL) -> bool:
    """The second URL may only add encryption."""
    if target.raw_host != url.raw_host:
        return False
    is_upgrade = (url.scheme, target.scheme) == ("http", "https") and url.port is None and target.port is None
    return is_upgrade or (url.scheme, url.port) == (target.scheme, target.port)


def _seen(body: Body, url: str) -> Body:
    if body.text is None:
        return body
    text, hidden = markdown_of(body.text, url) if body.is_html else (body.text, 0)
    text, invisible = without_invisible(text.replace("\r\n", "\n").replace("\r", "\n"))
    return attrs.evolve(body, text=text, hidden=hidden, invisible=invisible)


@attrs.frozen
class Body:
    """The body of a response.

    A binary body has no ``text``, and the size that the server states. ``hidden`` and ``invisible`` count
    omitted characters.
    """

    kind: str
    text: str | None
    is_html: bool = False
    size: int = 0
    is_cut: bool = False
    hidden: int = 0
    invisible: int = 0


async def read_body(response: httpx.Response, most: int) -> Body:
    """Read up to ``most`` bytes of a body, before and after decompression."""
    stated = response.headers.get("content-type", "")
    kind = stated.partition(";")[0].strip().lower()
    if kind and kind not in _HTML and _TEXT.fullmatch(kind) is None:
        length = response.headers.get("content-length", "")
        return Body(kind, None, size=int(length) if re.fullmatch(r"\d{1,15}", length) else 0)
    data, is_cut = await _bytes_of(response, most)
    is_html = kind in _HTML or (not kind and _LOOKS_LIKE_HTML.match(data) is not None)
    encoding = _encoding(data, stated, is_html=is_html)
    if not kind and b"\0" in data[:_SNIFFED] and not encoding.startswith("utf-16"):
        return Body("", None, size=len(data), is_cut=is_cut)
    return Body(kind, data.decode(encoding, "replace"), is_html, len(data), is_cut)


async def _bytes_of(response: httpx.Response, most: int) -> tuple[bytes, bool]:
    compression = response.headers.get("content-encoding", "identity").strip().lower()
    if compression not in ("identity", "gzip", "x-gzip", "deflate", ""):
        raise FetchError(url=str(response.url), reason=f"it is compressed as {compression[:40]!r}")
    unpack = zlib.decompressobj(_ANY_COMPRESSION) if compression not in ("identity", "") else None
    data = bytearray()
    received = 0
    async for chunk in response.aiter_raw():
        received += len(chunk)
        free = most - len(data)
        if unpack is None:
            data += chunk[:free]
        else:
            try:
                # A few bytes can unpack to any number, so each step is limited.
                data += unpack.decompress(chunk, free + 1)[:free]
            except zlib.error as error:
                raise FetchError(url=str(response.url), reason=f"it cannot be unpacked ({error})") from error
        if received > most or len(data) >= most:
            return bytes(data), True
    return bytes(data), False


def _encoding(data: bytes, stated: str, *, is_html: bool) -> str:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return encoding
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", stated, re.IGNORECASE)
    names = [found[1]] if found else []
    meta = _META.search(data[:_SNIFFED]) if is_html else None
    if meta is not None:
        names.append(meta[1].decode("ascii", "replace"))
    for name in names:
        try:
            known = codecs.lookup(name).name
        except (LookupError, ValueError):
            continue
        if _ENCODINGS.fullmatch(known):
            return "cp1252" if known in ("iso8859-1", "ascii") else known  # as browsers read them
    return "utf-8"
