"""Finds secrets in linear time."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

import jsonschema_rs

from kantan_agents.support.secrets.names import NAME, is_placeholder, is_secret_value, kind_of
from kantan_agents.support.secrets.token_formats import BOUNDARY, NEEDLES, NEXT_TOKEN, TOKEN


class Secret(NamedTuple):
    """A secret: its start, its end, and the start of the name or prefix that identifies it.

    ``quote``: the quotes that a replacement of a number in JSON needs.
    """

    start: int
    end: int
    begin: int
    quote: str = ""


_LONGEST_VALUE = 4096
_JUDGED = 128
"""Only this prefix is examined, so that many names in one long value take linear time."""
_LONGEST_ROW = 4096
_LONGEST_OPTION = 72
_MOST_ESCAPES = 256
_SHORTEST_BEARER = 8
_SHORTEST_WORD = 10

_SPACE = r"(?:\s|\\+[nrtf])"
_NAMES = re.compile(NAME, re.IGNORECASE | re.ASCII)
_SEPARATOR = re.compile(
    rf"(?P<quote>\\*[\"'`]|\*\*?)?[\])]?{_SPACE}{{0,8}}(?P<sign>:=|=>|==?|:|%3[DdAa]|,(?=\s{{0,8}}b?\\*[\"']))?"
    rf"(?:\*\*(?=[\s`]))?{_SPACE}{{0,8}}(?:b(?=\\*[\"']))?(?P<open>\\*[\"'`])?"
)
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|Bot|Digest|Negotiate|Api-?Key|Key|AWS4-HMAC-SHA256)(?::\s{0,8}|\s{1,8})",
    re.IGNORECASE,
)
_BARE = re.compile(r"[!-~]*")
_STOP = re.compile(r"[\"'`<>(){}\[\]\\|&]|[;,](?=\s|\Z|[\"'])|;(?=[A-Za-z ]{1,40}=)")
# Follows the quote that ends a string such as "Password: ", rather than starting a value.
_AFTER_TEXT = re.compile(r"\s*(?:[,:]\s*\\*[\"']|,\s+[A-Za-z_]\w*\s*=|[)\]}]+(?:\s*\Z|[\s,;:\"'\\]))")
# Follows a key. A name and a value in a list are followed by another item or by nothing.
_AFTER_KEY = re.compile(rf"\\*[\"']{_SPACE}{{0,8}}:")
_MAY_BE_KEY = re.compile(rf"\\*[\"']?{_SPACE}{{0,8}}\\*\Z")
_OPTION = re.compile(r"(?:^|[\s\"'\[(,`]|\\[nrt])--?[A-Za-z0-9_.-]{0,64}\Z")
_UNDECIDED = re.compile(r"(?:%3?|\*\*?|,\s{0,8}b?\\*|\\+)?\Z")
_NUMBER = re.compile(r"-?[0-9.eE+-]+")
_SPACED = re.compile(r"\s|\\[nrtf]")
_DIGIT = re.compile(r"[0-9](?![0-9a-f]{0,16}\])")  # not the digits of a placeholder such as `[email_1]`
_BEARER = re.compile(
    rf"{BOUNDARY}(?P<scheme>bearer|basic)(?P<space>\s{{1,8}})(?P<value>[A-Za-z0-9._~+/=-]*)", re.IGNORECASE
)
_ADDRESS = re.compile(r"(?P<user>[^\s/?#@:\"'<>`\\]{0,256})(?P<rest>:[^\s/?#\"'<>`\\]{0,512})?")
_SCHEME_BACKWARDS = re.compile(r"[A-Za-z0-9+.-]{0,20}")
_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_STOP = re.compile(r"-----END|[^A-Za-z0-9+/=:,.\s\"'\\-]|(?<!\\)\\+(?![\\nrt])")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_OPEN = re.compile(r"-{1,5}(?:B(?:E(?:G(?:I(?:N(?: [A-Z0-9 ]{0,64}-{0,5})?)?)?)?)?)?\Z")

# Names, tokens and URLs consist of these; a row of them at the end of streamed text may continue.
_ROW_BACKWARDS = re.compile(r"[A-Za-z0-9_.+/=~:@%\\\u0130\u0131\u212a-]*")


def _needle() -> re.Pattern[str] | str:
    space = r"(?:\s|\\+(?:[nrtf]|u[0-9A-Fa-f]{4}))"
    join, k = "[_.-]?", "[k\u212a]"
    keys = "secret|private|account|auth|client|encryption|signing|storage|subscription|service|master|access"
    keys += "|openai|anthropic"
    names = f"ap[i\u0130\u0131]{join}{k}ey|(?:{keys}){join}key|authorization|secret|token|bearer"
    names = f"(?i:{names}|pass(?:word|wd|phrase)|pwd|[_-]pass)"
    signed = rf"{names}(?:\\*[\"'`]|\*\*?)?[\])]?{space}*(?:[:=]|%3[DdAa])"
    listed = rf"{names}\\*[\"']{space}*[,}}]"
    option = rf"-[A-Za-z0-9_.-]*{names}(?:\\*[\"'])?{space}"
    scheme = rf"(?i:bearer|basic){space}+[A-Za-z0-9._~+/=-]{{8}}"
    address = r"://[^\s/?#@:]*:[^\s/?#]+@"
    return "|".join((signed, listed, option, scheme, address, "-----BEGIN [A-Z0-9 ]*PRIVATE KEY", *NEEDLES))


# This regular expression engine takes linear time, and no longer than two searches for a word.
_has_needle = jsonschema_rs.validator_for(
    {"pattern": _needle()}, pattern_options=jsonschema_rs.RegexOptions()
).is_valid


def may_contain_secret(text: str) -> bool:
    """Also for the strings in JSON; False is certain."""
    try:
        return _has_needle(text)
    except ValueError:  # half a surrogate pair
        return _has_needle(text.encode("utf-8", "replace").decode())


def scan(text: str, start: int = 0, *, whole: bool = True) -> tuple[list[Secret], int]:
    """Return the secrets in order, and the index up to which more text cannot change them.

    Characters before ``start`` are for lookbehind only; ``whole`` if the text is complete.
    """
    if whole and not may_contain_secret(text):
        return [], len(text)
    final = len(text) if whole else _start_of_row(text, start)
    secrets: list[Secret] = []
    # A private key first: it may be as long as the text, and before its end, nothing is certain.
    for find in (_pem_keys, _tokens, _schemes, _addresses, _named):
        if final <= start and not whole:
            break
        for secret in find(text, start, whole=whole):
            if isinstance(secret, int):
                final = min(final, secret)
            else:
                secrets.append(secret)
    return _merged(secrets), max(start, final)


def _merged(secrets: list[Secret]) -> list[Secret]:
    merged: list[Secret] = []
    for secret in sorted(secrets):
        last = merged[-1] if merged else None
        if last is not None and secret.start < last.end:
            merged[-1] = last._replace(end=max(secret.end, last.end), begin=min(secret.begin, last.begin))
        else:
            merged.append(secret)
    return merged


# Each of these yields the secrets of one kind, and an index that is undecided without more text.


def _tokens(text: str, start: int, *, whole: bool) -> Iterator[Secret | int]:  # noqa: ARG001
    found = TOKEN.search(text, start)
    while found is not None:
        if found.lastgroup is not None:
            yield Secret(found.start(found.lastgroup), found.end(), found.start())
        found = NEXT_TOKEN.match(text, found.end()) or TOKEN.search(text, found.end())


def _schemes(text: str, start: int, *, whole: bool) -> Iterator[Secret | int]:
    place = start
    while (found := _BEARER.search(text, place)) is not None:
        if found.end() == len(text) and not whole:
            yield found.start()
            return
        value = found["value"].rstrip(".=") if found["scheme"].lower() == "bearer" else found["value"]
        place = found.start("value")  # the value may be the scheme again
        if _is_credential(found["scheme"], value):
            place = found.end()
            yield Secret(found.start("value"), place, found.start())
    if not whole:
        yield from _cut_scheme(text, start)


def _cut_scheme(text: str, start: int) -> Iterator[int]:
    row = _start_of_row(text, start)
    stripped = text[max(start, row - 16) : row].rstrip()
    if stripped.lower().endswith(("bearer", "basic")):
        yield max(start, row - 16) + len(stripped) - 6


def _is_credential(scheme: str, value: str) -> bool:
    if scheme == "Bearer" and len(value) >= _SHORTEST_WORD:
        return True
    if len(value) < _SHORTEST_BEARER:
        return False
    if scheme.lower() == "bearer":
        return any(map(str.isdigit, value))
    try:
        return b":" in base64.b64decode(value, validate=True)
    except ValueError:
        return False


def _addresses(text: str, start: int, *, whole: bool) -> Iterator[Secret | int]:
    place = text.find("://", start)
    while place >= 0:
        found = _ADDRESS.match(text, place + 3)
        if found is not None and found.end() == len(text) and not whole:
            yield place - _length_before(_SCHEME_BACKWARDS, text, start, place, 20)
            return
        rest: str = (found["rest"] if found is not None else None) or ""
        at = rest.rfind("@")
        if found is not None and at > 1 and not is_placeholder(rest[1:at]):
            yield Secret(found.start("rest") + 1, found.start("rest") + at, place)
        place = text.find("://", place + 3)


def _pem_keys(text: str, start: int, *, whole: bool) -> Iterator[Secret | int]:
    place = start
    while (found := _PEM_BEGIN.search(text, place)) is not None:
        stop = _PEM_STOP.search(text, found.end())
        end = len(text) if stop is None else stop.start()
        last = _PEM_END.match(text, end)
        if last is None and not whole and len(text) - end < 80:  # noqa: PLR2004 - an END line is not longer
            yield found.start()
            return
        place = end
        if end > found.end():
            yield Secret(found.end(), end, found.start())
    opened = _PEM_OPEN.search(text, max(start, len(text) - 100)) if not whole else None
    if opened is not None:
        yield opened.start()


def _named(text: str, start: int, *, whole: bool) -> Iterator[Secret | int]:
    place = start
    ends = _BareEnds(text)
    while (name := _NAMES.search(text, place)) is not None:
        place = name.end()
        between = _SEPARATOR.match(text, place)
        if between is None or (not whole and _UNDECIDED.match(text, between.end()) is not None):
            yield name.start()
            return
        if not _assigns(text, name, between):
            continue
        scheme = _SCHEME.match(text, between.end())
        begin = between.end() if scheme is None else scheme.end()
        is_quoted = between["open"] is not None
        end = _end_of_quoted(text, begin, between["open"]) if is_quoted else ends.after(begin)
        if not whole and (end is None or end >= len(text) - 1 or _MAY_BE_KEY.match(text, end)):
            yield name.start()
            return
        end = len(text) if end is None else end
        if not is_quoted and text[end : end + 1] in ("(", "["):
            continue  # the call of a function
        if between["sign"] == "," and scheme is None and _are_names(text, begin, end):
            continue
        if (
            is_quoted
            and between["quote"] is None
            and between["sign"] == ":"
            and _AFTER_TEXT.match(text, begin)
        ):
            continue
        is_markdown = between["open"] == "`"
        if is_markdown and _SPACED.search(text, begin, end) is not None:
            continue
        sure = (is_quoted and not is_markdown) or scheme is not None
        may_be_code = not sure and (
            between["sign"] != "="
            or _SPACED.search(between[0]) is not None
            or text[end : end + 1] in (")", ",")
        )
        if is_secret_value(
            kind_of(name),
            _without_stars(text[begin : min(end, begin + _JUDGED)]),
            quoted=sure,
            code=may_be_code,
        ):
            is_number = not is_quoted and between["quote"] is not None and _NUMBER.fullmatch(text, begin, end)
            yield Secret(begin, end, name.start(), between["quote"] if is_number else "")
            place = end


def _are_names(text: str, begin: int, end: int) -> bool:
    """Two names, or a value and the next key."""
    return _DIGIT.search(text, begin, end) is None or _AFTER_KEY.match(text, end) is not None


def _without_stars(value: str) -> str:
    return value.strip("*") if value.startswith("*") and not value.startswith("**") else value  # Markdown


def _assigns(text: str, name: re.Match[str], between: re.Match[str]) -> bool:
    sign = between["sign"]
    if sign == ",":
        return between["quote"] is not None  # a pair such as `("authorization", "...")`
    if sign is not None:
        return sign != "==" or between["open"] is not None
    # An option of a command and its value, such as `--api-key value`.
    before = text[max(0, name.start() - _LONGEST_OPTION) : name.start()]
    is_apart = between["quote"] not in ("`", "*", "**") and _SPACED.search(between[0]) is not None
    return is_apart and _OPTION.search(before) is not None


class _BareEnds:
    """Finds where unquoted values end. Values may overlap; each character is read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = self._row = self._stop = -1

    def after(self, begin: int) -> int:
        if not self._begin <= begin < self._row:
            found = _BARE.match(self._text, begin)
            self._begin, self._row = begin, found.end() if found is not None else begin
            self._stop = -1
        if begin > self._stop:
            stop = _STOP.search(self._text, begin, min(self._row + 1, len(self._text)))
            self._stop = self._row if stop is None else min(stop.start(), self._row)
        return min(self._stop, begin + _LONGEST_VALUE)


def _end_of_quoted(text: str, begin: int, opened: str) -> int | None:
    """Return the index of the closing quote; None if it is not in the text."""
    sign, depth = opened[-1], len(opened) - 1
    limit = min(len(text), begin + _LONGEST_VALUE)
    since, line = begin, -1  # a line end before the quote ends the value as well
    while line < 0 and (place := text.find(sign, since, limit)) >= 0:
        line = text.find("\n", since, place)
        before = text[max(begin, place - _MOST_ESCAPES) : place]
        escapes = len(before) - len(before.rstrip("\\"))
        if line < 0 and escapes % (2 * (depth + 1)) == depth:
            return place - depth
        since = place + 1
    line = line if line >= 0 else text.find("\n", since, limit)
    if line >= 0:
        return line
    return limit if limit < len(text) else None


def _start_of_row(text: str, start: int) -> int:
    return len(text) - _length_before(_ROW_BACKWARDS, text, start, len(text), _LONGEST_ROW)


def _length_before(pattern: re.Pattern[str], text: str, start: int, end: int, longest: int) -> int:
    found = pattern.match(text[max(start, end - longest) : end][::-1])
    return found.end() if found is not None else 0
