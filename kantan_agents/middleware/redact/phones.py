"""The formats of phone numbers, for ``Redact``."""

from __future__ import annotations

import re

NUMBER_SIGNS = "0123456789+-.()/ "
"""Characters of phone and card numbers."""

_NO_WORD_BEFORE = r"(?<![A-Za-z0-9_])"
_NO_WORD_AFTER = r"(?![A-Za-z0-9_])"
NO_NUMBER_BEFORE = (
    r"(?:(?<!\d[.,])|(?<=\d{8},)|(?<=\d[ -]\d{3},)|(?<=\d[ -]\d{4},)|(?<=\d-\d{3}\.)|(?<=\d-\d{4}\.))"
)
"""Not after a fraction or thousands separator, except after many digits or a phone number."""
_NO_UUID_BEFORE = r"(?<![0-9A-Fa-f]{4}-)"
_NO_PART_BEFORE = f"{_NO_WORD_BEFORE}{NO_NUMBER_BEFORE}{_NO_UUID_BEFORE}"
# The digits of a number. After its shortest length, a space or dot before another number ends it; other
# digits belong to it, up to its greatest length.
_DIGIT = r"(?:[ .()-]{0,2}\d)"
# `010` is also the start of numbers in Korea, unless a short group, a country code, follows.
_ABROAD = r"(?:00|011|010(?=[ .-]\d{1,3}[ .-]))[ .-]?[1-9]"
_ANOTHER = rf" (?:\+[1-9]|{_ABROAD}){_DIGIT}{{7}}| 0\d(?:(?! 00[1-9]){_DIGIT}){{7}}|\.0\d(?:-?\d){{7}}"
_FURTHER = f"(?:(?!{_ANOTHER}){_DIGIT})"
_ZERO = r"(?:\d{0,2}[ .()-]{0,2}0)?"  # after a country code
PHONE = "|".join(
    (
        rf"(?<!\d)\+\d{_ZERO}{_DIGIT}{{6,9}}{_FURTHER}{{0,6}}(?!\d)",  # with country code
        rf"{_NO_PART_BEFORE}\(?{_ABROAD}{_ZERO}{_DIGIT}{{7,9}}{_FURTHER}{{0,5}}{_NO_WORD_AFTER}",
        rf"{_NO_PART_BEFORE}\(?0\d{_DIGIT}{{7}}{_FURTHER}{{0,3}}{_NO_WORD_AFTER}",
        # With a slash after the area code, and not in a path.
        (
            rf"{_NO_PART_BEFORE}(?<!/)(?:\(?0|(?:\+|00)[1-9]\d{{0,2}}[ ./-]?(?:\(0\) ?)?)[1-9]\d{{1,3}}"
            rf"\)? ?/ ?\d(?:[ .-]?\d){{5,7}}{_NO_WORD_AFTER}(?![/-])"
        ),
        # With a space after the 0.
        rf"{_NO_PART_BEFORE}0[ -](?:\d{{2,4}}[ -]\d{{5,8}}|\d{{3}}(?:[ -]\d\d){{3}}){_NO_WORD_AFTER}(?!-)",
        # After any number: no fraction and no group of thousands has hyphens.
        rf"(?<=\d[.,])0(?:\d{{1,4}}-\d{{1,4}}-\d{{4}}|\d{{3}}-\d{{3}}-\d{{3}}){_NO_WORD_AFTER}",
        rf"{_NO_WORD_BEFORE}(?:1[ .-])?\(?[2-9]\d{{2}}\)?[ .-]{{1,2}}\d{{3}}[ .-]\d{{4}}{_NO_WORD_AFTER}",
        rf"{_NO_WORD_BEFORE}1\d{{2}}[ -]\d{{4}}[ -]\d{{4}}{_NO_WORD_AFTER}",
        # Toll-free, as in Australia, Ireland, India and Singapore.
        rf"{_NO_WORD_BEFORE}1-?[38]00[ -](?:\d[ -])?(?:\d{{2,3}}[ -]\d{{3,4}}|\d{{6}}){_NO_WORD_AFTER}",
    )
)
"""Matches candidates; ``phone_length`` decides."""

# A date, or the start of a UUID.
_NO_PHONE = re.compile(r"(?!00)\(?\d{1,2}[-. ]\d{1,2}[-. ]\d{4}(?!\d)|\d{8}-\d{4}\Z")
# Before the number of a book or product.
_GOODS = re.compile(
    r"\b(?:ISBN|EAN|GTIN|UPC)(?:-?(?:8|1[0-4]|A))?[^\w+]{1,4}(?:97[89][ -])?(?:\d{1,5}[ -])?\Z",
    re.ASCII | re.IGNORECASE,
)
_ISBN = re.compile(r"(?<!\d)97[89]([ -])\d{1,5}\1\d{1,7}\1\d{1,6}\1\d(?!\d)", re.ASCII)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d\d(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?(?!\w)", re.ASCII)
_LONGEST_IBAN = 42
_LONGEST_NAME = 24
_LONGEST_GROUP = 10  # `978-` and the longest group after it


def phone_length(found: re.Match[str]) -> int:
    """Return the length of a match; 0 for a date or part of another number."""
    text, start = found.string, found.start()
    if text[start] == "+":
        return len(found[0])
    nearby = _IBAN.finditer(text, max(0, start - _LONGEST_IBAN), start + _LONGEST_IBAN)
    if any(iban.start() < start < iban.end() and _is_iban(iban[0]) for iban in nearby):
        return 0
    if _NO_PHONE.match(found[0]) or _GOODS.search(text[max(0, start - _LONGEST_NAME) : start]):
        return 0
    book = _ISBN.search(text, max(0, start - _LONGEST_GROUP), found.end() + _LONGEST_GROUP)
    return 0 if book is not None and book.start() < start < book.end() else len(found[0])


def _is_iban(text: str) -> bool:
    """Verify the check digits (ISO 13616)."""
    signs = text.replace(" ", "")
    return int("".join(str(int(sign, 36)) for sign in f"{signs[4:]}{signs[:4]}")) % 97 == 1
