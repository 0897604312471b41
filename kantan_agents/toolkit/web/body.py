"""The body of an answer: read up to a limit, decompressed up to a limit, and decoded."""

from __future__ import annotations

import codecs
import re
import zlib

import attrs
import httpx

from kantan_agents.errors import FetchError

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
# Other codecs of Python take quadratic time, or run what they read as escapes.
_ENCODINGS = re.compile(
    r"utf-8|utf-16(?:-[lb]e)?|ascii|iso8859-\d+|cp125\d|cp866|cp932|cp949|koi8-[ru]|shift_jis|euc_(?:jp|kr)"
    r"|iso2022_jp|gb2312|gbk|gb18030|big5|mac-roman|tis-620"
)


@attrs.frozen
class Body:
    """The body of an answer.

    Attributes:
        kind: Its media type; empty if the server says none.
        text: Its text; None if it is something else than text.
        is_html: Whether the text is HTML.
        size: How many bytes were read; the size that the server states if it is not text.
        is_cut: Whether there was more.
        hidden: How many characters of its text are left out, because readers of the page do not see them.
        invisible: How many invisible characters are left out.
    """

    kind: str
    text: str | None
    is_html: bool = False
    size: int = 0
    is_cut: bool = False
    hidden: int = 0
    invisible: int = 0


async def read_body(response: httpx.Response, most: int) -> Body:
    """Read the body of an answer.

    Args:
        response: The answer, whose body has not been read.
        most: How many bytes to read at most, before and after decompression.

    Raises:
        FetchError: E172, it is compressed in a way that was not asked for, or wrongly.
    """
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
                # A few bytes can unpack to any number, so each step has a limit of its own.
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
