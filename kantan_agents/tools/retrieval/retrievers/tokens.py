"""Splits text into search terms: English, Japanese, Chinese, and identifiers of programs."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import Any

_SYNONYM_LINES = """
create: add new make open set start write
delete: remove drop erase clear
update: change edit modify correct fix adjust set
list: all every show which overview
get: show see view open look check read details status
search: find look where any lookup
find: search look where
cancel: stop abort
send: mail message
book: reserve order
reserve: book
schedule: arrange plan book
appointment: visit checkup
"""

_ABBREVIATION_LINES = """
repository: repo repos
pull request: pr prs
document: doc docs
database: db
application: app apps
photo: pic pics picture pictures
image: pic pics picture pictures
configuration: config
administrator: admin
certificate: cert
virtual machine: vm vms
message: msg
information: info
address: addr
temperature: temp
telephone: phone
"""

# Kanji and hanzi with extensions and iteration mark, kana, hangul: scripts without spaces between words.
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〆"
_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
_HANGUL = "\uac00-\ud7af"
_UNSPACED = f"{_HAN}{_KANA}{_HANGUL}"

_WORD = f"[^\\W_{_UNSPACED}]+"
_RUNS = re.compile(f"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>{_WORD}(?:['\u2019]{_WORD})?)")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IS_HAN = re.compile(f"[{_HAN}]")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc-\u30ff]{2,}")
_SIMPLE = re.compile("[a-z]+|[0-9]+")
_PLAIN_WORDS = re.compile("[A-Za-z]+")
_LONGEST_WORD = 60


def _read(lines: str) -> dict[str, tuple[str, ...]]:
    meant: dict[str, list[str]] = {}
    for line in lines.strip().splitlines():
        term, _, words = line.partition(": ")
        for word in words.split():
            meant.setdefault(word, []).append(term)
    return {word: tuple(terms) for word, terms in meant.items()}


SYNONYMS = _read(_SYNONYM_LINES)
"""Maps an English word of a request to the words that tools use for it."""

ABBREVIATIONS = _read(_ABBREVIATION_LINES)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that do not describe what a tool does. "Not" and "without" do.
STOP_WORDS = _words(
    """a about all also am an and any are as at be been but by can could did do does for from had has have
    hello her hers hey hi him his he how i if in into is it its just let like me mine my need now of on one or
    our please shall she should so some tell thank thanks that the their them then there these they this those
    to too us was we were what when where which who why will with would you your"""
)
# In a request these words carry no meaning; in a tool's name they are its action.
_REQUEST_VERBS = _words("get give make out put want")


def terms_of(text: str) -> list[str]:
    """Return the terms of ``text``, in order and with repetitions.

    Width (NFKC) and case are ignored. ``camelCase``, ``snake_case`` and ``v2`` are split, English words are
    stemmed, and stop words are omitted. Japanese, Chinese and Korean text gives pairs of adjacent characters,
    each kanji or hanzi, and words in katakana; pairs of hiragana are mostly grammar, and omitted.
    """
    terms: list[str] = []
    for run in _RUNS.finditer(unicodedata.normalize("NFKC", text)):
        unspaced = run["unspaced"]
        if unspaced:
            _add_unspaced(unspaced, terms)
        else:
            word = run["word"].replace("\u2019", "'").partition("'")[0]
            terms += _terms_of_word(word[:_LONGEST_WORD])
    return terms


def query_terms(text: str) -> list[tuple[str, bool]]:
    """Return unique terms, and whether each occurs or is a synonym."""
    words = dict.fromkeys(word.lower() for word in _PLAIN_WORDS.findall(text))
    long_forms = " ".join(term for word in words for term in ABBREVIATIONS.get(word, ()))
    own = [term for term in dict.fromkeys(terms_of(f"{text} {long_forms}")) if term not in _REQUEST_VERBS]
    meant = terms_of(" ".join(term for word in words for term in SYNONYMS.get(word, ())))
    return [(term, True) for term in own] + [
        (term, False) for term in dict.fromkeys(meant) if term not in own
    ]


def _add_unspaced(run: str, terms: list[str]) -> None:
    terms += _KATAKANA.findall(run)
    terms += _IS_HAN.findall(run)
    pairs = (run[place : place + 2] for place in range(len(run) - 1))
    terms += [
        pair for pair in pairs if not ("\u3041" <= pair[0] <= "\u309f" and "\u3041" <= pair[1] <= "\u309f")
    ]


@lru_cache(maxsize=50_000)
def _terms_of_word(word: str) -> tuple[str, ...]:
    parts = _PARTS.findall(word) if word.isascii() and not _SIMPLE.fullmatch(word) else [word]
    return tuple(_stem(part.lower()) for part in parts if part.lower() not in STOP_WORDS)


_lock = threading.Lock()
_stemmers: list[Any] = []


def _stem(word: str) -> str:
    if not word.isascii() or not word.isalpha():
        return word
    with _lock:  # a stemmer has state while it works
        if not _stemmers:
            import snowballstemmer

            _stemmers.append(snowballstemmer.stemmer("english"))
        return str(_stemmers[0].stemWord(word))
