"""Names of secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

Kind = Literal["key", "password", "secret", "token", "authorization"]

# Regular expressions that ignore case match these letters as "i" and "k" too.
_I, _K = "[i\u0130\u0131]", "[k\u212a]"
_JOIN = r"[_.-]?"
_OWNER = (
    "access|account|admin|app(?:lication)?|auth|bot|ci|client|consumer|csrf|db|database|deploy|encryption|gh|github"
    "|gitlab|hf|id|jwt|master|npm|oauth|openai|personal|private|push|pypi|refresh|secret|security|service"
    "|session|signing|slack|storage|subscription|user|webhook|xsrf"
)

_KEEPER = (
    "secret|private|account|auth|client|encryption|signing|storage|subscription|service|master"
    "|openai|anthropic"
)

# Longer names first, since the first alternative that matches counts.
_NAMES: tuple[tuple[Kind, str], ...] = (
    ("authorization", "authorization"),
    ("key", f"ap{_I}{_JOIN}{_K}ey"),
    ("key", f"(?:{_KEEPER}){_JOIN}(?:access{_JOIN})?key"),
    ("key", f"access{_JOIN}key"),
    ("password", "pass(?:word|wd|phrase)|(?<![A-Za-z])pwd|(?<=[_-])pass"),
    ("secret", "secret"),
    ("key", f"(?:{_OWNER}|bearer){_JOIN}token"),
    ("token", "token"),
    ("token", "bearer"),
)
NAME = "|".join(f"(?P<n{number}>{pattern})" for number, (_, pattern) in enumerate(_NAMES))
KINDS: tuple[Kind, ...] = tuple(kind for kind, _ in _NAMES)

_WHOLE_NAME = re.compile(rf"[-/A-Za-z0-9_.:\u0130\u0131\u212a]*?(?:{NAME})", re.IGNORECASE | re.ASCII)
_LONGEST_NAME = 128

# Stand-ins for a value.
_TYPE_WORDS = (
    "any|bool|bytes|default|empty|false|field|hidden|int|masked|missing|nil|none|null|object|optional"
    "|redacted|removed|required|str|string|true|undefined|unset"
)
_STAND_IN = re.compile(f"{_TYPE_WORDS}|key|passwd|password|secret|text|token|value", re.IGNORECASE)
_NO_PASSWORD = re.compile(_TYPE_WORDS, re.IGNORECASE)
_NO_VALUE = re.compile(r"[*.\u2022_#=-]+|[Xx]{3,}|\$.*|<[^<>]*>|\{.*|%\(.*|%[A-Za-z_]+%|\[.*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_]+)*")
_CODE = re.compile(
    r"(?:os|self|cls|settings|config|cfg|env|environ|process|args|options|request|ctx|secrets)\.\w.*"
)

# The digits of a placeholder such as `[email_1]` are not a sign of a random value.
_PLACEHOLDER = r"\[[A-Za-z]\w{0,31}_[0-9a-f]{1,16}\]"
_RANDOM = re.compile(rf"(?=(?:{_PLACEHOLDER}|(?!{_PLACEHOLDER})[^\s\d])*\d)(?=[\W\d_]*[^\W\d_])\S+")

MASK = "***"

_LONG = 16
_SHORTEST_KEY = 6


def secret_name(name: str) -> Kind | None:
    """Return the kind of secret, or None."""
    if len(name) > _LONGEST_NAME:
        return None
    found = _WHOLE_NAME.fullmatch(name)
    return kind_of(found) if found is not None else None


def kind_of(found: re.Match[str]) -> Kind:
    """Return the kind of the name in a match of ``NAME``."""
    return KINDS[int(str(found.lastgroup)[1:])]


def is_secret_value(kind: Kind, value: str, *, quoted: bool = True, code: bool = False) -> bool:
    """Whether a value after a name of this kind is a secret.

    ``quoted``: it is in quotes, or the value of a key in data. ``code``: unquoted, it may be a name in source
    code.
    """
    # A bad password may be the word "password".
    stand_in = _NO_PASSWORD if kind == "password" and not code else _STAND_IN
    if is_placeholder(value) or stand_in.fullmatch(value):
        return False
    if kind == "token":
        return len(value) >= _LONG and _is_random(value)
    if kind == "password":
        if not quoted and value[0] in "/~":
            return False  # the working directory, PWD
        return quoted or not code or not _is_code(value)
    if kind == "authorization":
        return quoted or not code or any(map(str.isdigit, value))
    if len(value) < _SHORTEST_KEY or (quoted and any(map(str.isspace, value))):
        return False
    return quoted or not code or not _is_code(value)


def is_placeholder(value: str) -> bool:
    """Empty, a mask, a variable or a template."""
    return not value or MASK in value or _NO_VALUE.fullmatch(value) is not None


def _is_code(value: str) -> bool:
    return _IDENTIFIER.fullmatch(value) is not None or _CODE.fullmatch(value) is not None


def _is_random(value: str) -> bool:
    return _RANDOM.fullmatch(value) is not None


def is_named_secret(name: str, value: str) -> bool:
    """Whether the value with this name is a secret."""
    kind = secret_name(name) if name else None
    return kind is not None and is_secret_value(kind, value)


def name_of_value(data: Mapping[Any, Any]) -> str:
    """The name in ``{"name": "x-api-key", "value": "..."}``, or ""."""
    name = data.get("name", data.get("key")) if "value" in data else None
    return name if isinstance(name, str) else ""


def names_in_list(items: Sequence[Any], name: str = "") -> list[str]:
    """Return a name for each item.

    In ``["--api-key", "..."]`` and ``["authorization", "..."]``, an item names the next one.
    """
    names = [name] * len(items)
    for number, (option, value) in enumerate(pairwise(items), 1):
        if not isinstance(option, str) or not isinstance(value, str):
            continue
        # Two words in a list may also be two names.
        is_pair = option.startswith("-") or len(items) == 2  # noqa: PLR2004
        if is_pair and (any(map(str.isdigit, value)) or " " in value):
            names[number] = option
    return names
