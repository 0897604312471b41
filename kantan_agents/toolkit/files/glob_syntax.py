"""Translates glob patterns into regular expressions."""

from __future__ import annotations

import re

from kantan_agents.toolkit.files.linear import escaped

_DEEPEST = 10
_TOKEN = re.compile(
    r"(?P<stars>\*\*+)(?P<slash>/?)"
    r"|(?P<class>\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\])"
    r"|\\(?P<escaped>.)"
    r"|(?P<one>.)",
    re.DOTALL,
)
_OF_CLASS = re.compile(r"\[:[a-z]+:\]|\\.|.", re.DOTALL)
_SIMPLE = {"*": "[^/]*", "?": "[^/]"}
_BRACES = {"{": "(?:", "}": ")"}


def translated(text: str, *, braces: bool = True) -> str:
    """Return the regular expression of a glob pattern."""
    out: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        one = token["one"]
        if token["stars"]:
            out.append(_stars(text, token, "/{," if braces else "/"))
        elif token["class"]:
            out.append(_class(token["class"]))
        elif token["escaped"]:
            out.append(_literal(token["escaped"]))
        elif one in "[\\":
            raise ValueError(f"{one} has nothing that ends it")
        elif one in "{}" and braces:
            depth += 1 if one == "{" else -1
            if not 0 <= depth <= _DEEPEST:
                raise ValueError(f"{one} has no partner, or is nested too deeply")
            out.append(_BRACES[one])
        else:
            out.append("|" if one == "," and depth else _SIMPLE.get(one) or _literal(one))
    if depth:
        raise ValueError("{ has nothing that ends it")
    return f"(?s){''.join(out)}"


def _stars(text: str, token: re.Match[str], before: str) -> str:
    start, end = token.span("stars")
    is_begin = start == 0 or text[start - 1] in before
    if is_begin and token["slash"]:
        return "(?:[^/]+/)*"
    if is_begin and (end == len(text) or text[end] in ",}"):
        return ".+"
    return f"[^/]*{token['slash']}"


def _literal(one: str) -> str:
    return one if one.isalnum() or one == "/" else escaped(one)


def _class(text: str) -> str:
    body = text[1:-1]
    is_negated = len(body) > 1 and body[0] in "!^"
    items = [
        one if one.startswith("[:") or one == "-" else _literal(one[-1])
        for one in _OF_CLASS.findall(body[is_negated:])
    ]
    if "/" in items:
        raise ValueError("[...] cannot have a /")
    return f"[^/{''.join(items)}]" if is_negated else f"[{''.join(items)}]"
