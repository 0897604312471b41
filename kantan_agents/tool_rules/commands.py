"""Finds the commands that a string may contain for some shell. For deny, so it rather finds too many.

It cannot find every command (``$(echo r)m``, an existing script), so deny alone is not safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise, takewhile
from typing import Final, NamedTuple

from kantan_agents.tool_rules.wrappers import (
    AT_BEGIN,
    GIT,
    SEPARATOR,
    Place,
    begins_command,
    places_after,
    word_of,
)

_ENDS = re.compile(r"[;&|<>`\r\n(){}$]+")
_CONTINUED = re.compile(r"\\\r?\n")
_DOLLAR_OF_QUOTE = re.compile(r"""\$(?=["'])""")
_QUOTED = re.compile(
    r"""\$?"(?P<double>(?:\\.|[^"\\])*)"?|\$'(?P<escaped>(?:\\.|[^'\\])*)'?|'(?P<single>[^']*)'?|\\(?P<sign>.)""",
    re.DOTALL,
)
_UNQUOTED = r"""(?:[^\s;&|<>`()'"\\$]|\$(?!["']))*"""
# Searched only at the start of a word, so the time is linear.
_QUOTED_WORD = re.compile(rf"(?<![^\s;&|<>`()]){_UNQUOTED}(?:(?:{_QUOTED.pattern}){_UNQUOTED})+", re.DOTALL)
_ESCAPED = re.compile(r"""\\(["$\\`])""")
_SIGN = re.compile(r"\\(.)", re.DOTALL)
_QUOTE = re.compile(r"""["'\\]""")
_NESTED = re.compile(r"""["'\\`]|\$\(""")
_NO_LETTERS = re.compile(r"""[\s;&|<>`(){}$'"\\]""")
_ESCAPED_SIGN = re.compile(r"""\\[\s;&|<>()'"`]""")
_COMMENT = re.compile(r"#(?<!\S#)[^\n]*")
# Where the reading of quotes restarts; an unpaired quote ends there.
_RESTARTS = (re.compile(r"\n"), re.compile(r"\$\(|[<>]\(|\n"))
_BACKTICK = re.compile(r"(?<!\\)`")
_REDIRECTION = re.compile(r"\d{0,3}(?:&>>?|<<<|<<-?|[<>]&|<>|>>|>\||[<>])[ \t]*[^\s;&|<>`()]+")
_VARIABLE = re.compile(r"\$(?:\{[^{}\s]*\}|[A-Za-z_]\w*|[0-9@*#?!$-])")
_OUTPUT = re.compile(r"\$\([^()]*\)")
# A part of a word: a variable, a command's output, `{}` of find and xargs, an escaped sign.
_PART = re.compile(rf"{_VARIABLE.pattern}|{_OUTPUT.pattern}|`[^`]*`|\{{\}}|\\[;&|<>()'\"]")
# The command of an option in the same word: `su -c'git push'`. The regex engine searches for the hyphen
# first.
_ATTACHED = re.compile(r"-(?<!\S-)(?:[A-Za-z]*?[cSxX]|-(?:(?:session-)?command|split-string|exec)=)(?=\S)")

MOST_READ: Final = 600_000
"""Maximum number of characters in all readings of a command: about fifty milliseconds."""
_COST: Final = 50
"""Cost of a quote, and of the start of another string, in characters."""


def readings(text: str) -> Iterator[Reading]:
    """Yield each way in which a shell may read ``text``, or another shell a command inside it.

    Quotes are ordinary characters or join words. Targets of redirections are commands (``<(rm x)``) or
    omitted (``>log rm x``). Variables and outputs separate commands, are empty, or are part of a word. A
    quoted word may also be a separate command. The first reading is the simplest. If there are too many, the
    last one contains every command.
    """
    texts, known, seen, left = [_CONTINUED.sub("", text)], set[str](), set[str](), MOST_READ
    while texts:
        if (one := texts.pop()) in known:
            continue
        known.add(one)
        codes: dict[str, str] = {}
        left -= _COST * (1 + len(_QUOTE.findall(one)))
        spellings = _spellings(one, codes, is_inner=len(known) > 1)
        while left >= 0 and (spelling := next(spellings, None)) is not None:
            left -= len(spelling)
            if spelling in seen:
                continue
            seen.add(spelling)
            reading = Reading.make(_ENDS.sub(f" {SEPARATOR} ", spelling).split())
            yield reading
            for inner in reading.inner_texts(codes):
                texts.append(inner)
                left -= len(inner)
                if left < 0:
                    break
        if left < 0:
            yield Reading([], {}, is_complete=False)
            return
        ticks = _BACKTICK.split(one)
        pairs = "".join(f"{part}{'$(' if place % 2 == 0 else ')'}" for place, part in enumerate(ticks[:-1]))
        around = f"{pairs}{ticks[-1]}" if pairs else _OUTPUT.sub("_", one)
        if around != one and _NESTED.search(around):
            texts.append(around)


def _spellings(text: str, codes: dict[str, str], *, is_inner: bool) -> Iterator[str]:
    """Yield the spellings of a string without quotes; add quoted words to ``codes``."""
    for quoted in _quoted(text, codes, is_inner=is_inner):
        for redirected in dict.fromkeys((quoted, _REDIRECTION.sub(" ", quoted))):
            plain = (redirected, _VARIABLE.sub(" ", redirected), _PART.sub("_", redirected))
            for spelling in map(without_quotes, dict.fromkeys(plain)):
                yield spelling
                if (separated := _ATTACHED.sub(r"\g<0> ", spelling)) != spelling:
                    yield separated


def _quoted(text: str, codes: dict[str, str], *, is_inner: bool) -> list[str]:
    """Return the ways to read quotes; in an inner string, they are not ordinary characters."""
    if not _QUOTE.search(text):
        return [text]
    join = partial(_joined, codes)
    # Most comments contain no quote; removing these would only add a reading.
    no_comments = _COMMENT.sub(lambda found: "" if _QUOTE.search(found[0]) else found[0], text)
    texts = [_QUOTED_WORD.sub(join, no_comments)]
    if _ESCAPED_SIGN.search(text):  # on Windows, a backslash is an ordinary character
        texts.append(_QUOTED_WORD.sub(join, text.replace("\\", "/")))
    for restart in _RESTARTS:
        parts = restart.split(text)
        if len(parts) > 1:
            texts.append(f" {SEPARATOR} ".join(_QUOTED_WORD.sub(join, part) for part in parts))
    return list(dict.fromkeys(texts if is_inner else (text, *texts)))


def _joined(codes: dict[str, str], found: re.Match[str]) -> str:
    """Return a quoted word without blanks and signs; add its content to ``codes``."""
    content = _QUOTED.sub(_unquoted, found[0])
    if not any(_NO_LETTERS.search(_unquoted(part)) for part in _QUOTED.finditer(found[0])):
        return found[0]
    word = _NO_LETTERS.sub("_", content)
    codes[word] = content
    if attached := _ATTACHED.match(word):
        codes[word[attached.end() :]] = content[attached.end() :]
    return word


def _unquoted(found: re.Match[str]) -> str:
    kind = str(found.lastgroup)
    if kind == "escaped":
        return _SIGN.sub(lambda sign: {"n": "\n", "t": "\t"}.get(sign[1], sign[1]), found[kind])
    return _ESCAPED.sub(r"\1", found[kind]) if kind == "double" else found[kind]


def without_quotes(text: str) -> str:
    """Remove quotes, backslashes and line continuations."""
    text = _DOLLAR_OF_QUOTE.sub("", _CONTINUED.sub("", text))  # `$'push'` and `$"push"` are quotes too
    return text.replace("'", "").replace('"', "").replace("\\", "")


class Reading(NamedTuple):
    """One way to read a string, with ``SEPARATOR`` between commands.

    ``starts`` has the indexes of words that may start a command; the value is whether other words may follow
    it because it is quoted, as in ``trap 'git push' EXIT``.
    """

    words: list[str]
    starts: dict[int, bool]
    is_complete: bool = True

    @classmethod
    def make(cls, words: list[str]) -> Reading:
        """Return the reading with these words."""
        places: frozenset[Place] = AT_BEGIN
        starts: dict[int, bool] = {}
        for index, word in enumerate(words):
            if word == SEPARATOR:
                places = AT_BEGIN
            elif places:
                if (is_text := begins_command(places)) is not None:
                    starts[index] = is_text
                places = places_after(places, word_of(word))
        return cls(words, starts)

    def inner_texts(self, codes: dict[str, str]) -> Iterator[str]:
        """Yield the strings that one more shell may read."""
        for place, is_text in self.starts.items() if codes else ():
            word = self.words[place]
            if word in codes:
                yield codes[word]
            if is_text and word[0] not in "-+":  # a shell, or another program that joins words
                rest = takewhile(SEPARATOR.__ne__, self.words[place:])
                yield " ".join(codes.get(word, word) for word in rest)

    def holds(self, command: list[str], *, more: bool) -> bool:
        """Whether the words contain a command; options may precede all its words but the first."""
        if not self.is_complete:
            return True
        begins = [place for place in self.starts if f"/{self.words[place]}".endswith(f"/{command[0]}")]
        words = [*self.words, SEPARATOR]
        parts: set[_Part] = set()
        for begin, end in pairwise((*begins, len(words))):
            for place in range(begin, end):
                word = words[place]
                if any(part.length == len(command) and (part.more or word == SEPARATOR) for part in parts):
                    return True
                parts = {longer for part in parts for longer in _longer(part, word, command)}
                if place == begin:
                    parts.add(_Part(1, False, more or self.starts[begin]))
                if not parts:
                    break
        return False


class _Part(NamedTuple):
    length: int
    is_value: bool
    more: bool


def _longer(part: _Part, word: str, command: list[str]) -> Iterator[_Part]:
    if part.length == len(command):
        return
    if word == command[part.length]:
        yield part._replace(length=part.length + 1, is_value=False)
    if word == SEPARATOR:
        return
    if word.startswith("-"):
        yield part._replace(is_value=_takes_value(word, command[: part.length]))
    elif part.is_value:
        yield part._replace(is_value=False)


def _takes_value(option: str, before: list[str]) -> bool:
    if [word.rsplit("/", 1)[-1] for word in before] == list(GIT.names):
        return GIT in word_of(option).valued
    return "=" not in option  # unknown
