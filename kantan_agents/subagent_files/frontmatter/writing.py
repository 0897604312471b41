"""Writes a subagent file in YAML that every parser reads the same way."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kantan_agents.subagent_files.frontmatter.keys import DATA, KEY_OF, LISTS
from kantan_agents.subagent_files.tool_lists import ALL, as_text

_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_LONGEST_KEY: Final = 500
_NOT_PLAIN: Final = re.compile(r":(?: |\Z)| #| \Z")
# Strings only in some versions of YAML.
_RESERVED_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LITERAL_NEWLINE: Final = "\\n"


def dump_definition(definition: Any) -> str:
    """Return the subagent file for a definition."""
    front = "".join(f"{line}\n" for line in front_lines(definition))
    prompt = definition.system_prompt
    return f"---\n{front}---\n" + (f"\n{prompt}" if prompt else "")


def front_lines(definition: Any) -> Iterator[str]:
    """Yield the lines of the frontmatter."""
    for field, key in KEY_OF.items():
        value = getattr(definition, field)
        if value is None or (field == "tools" and value == ALL) or (field in LISTS - {"tools"} and not value):
            continue
        yield from field_lines(field, key, value)
    for key, value in definition.extra.items():
        yield from pair_lines(key, value)


def field_lines(field: str, key: str, value: Any) -> Iterator[str]:
    """Yield the lines that set a field."""
    if field == "description":
        yield f"{key}: {description_yaml(value)}"
    elif field in LISTS:
        text = value if isinstance(value, str) else as_text(value)
        yield from pair_lines(key, list(value) if text is None else text)
    elif field in DATA or isinstance(value, int):
        yield from pair_lines(key, value)
    else:
        yield f"{key}: {scalar_yaml(value)}"


def description_yaml(text: str) -> str:
    r"""Return a description as YAML, with literal ``\n`` escaped."""
    return quote(text).replace("\\\\", "\\x5c") if _LITERAL_NEWLINE in text else scalar_yaml(text)


def scalar_yaml(value: Any) -> str:
    """Return a scalar as YAML on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _float(value)
    return value if _is_plain(value) else quote(value)


def quote(text: str) -> str:
    """Return a quoted string, with invisible characters escaped."""
    return '"' + "".join(_ESCAPES.get(char) or _escape_invisible(char) for char in text) + '"'


def _escape_invisible(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02X}" if char <= "\xff" else f"\\u{code:04X}" if char <= "\uffff" else f"\\U{code:08X}"


def _is_plain(text: str) -> bool:
    return (
        text[:1].isalpha()
        and text.isprintable()
        and text.lower() not in _RESERVED_WORDS
        and not _NOT_PLAIN.search(text)
    )


def _float(value: float) -> str:
    digits, exponent, power = float.__repr__(value).partition("e")
    # PyYAML reads 1e+16 as a string.
    return f"{digits}.0e{power}" if exponent and "." not in digits else f"{digits}{exponent}{power}"


def pair_lines(key: str, value: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines that set a key to data."""
    name = key if _KEY.match(key) and key.lower() not in _RESERVED_WORDS else quote(key)
    # YAML allows keys of more than 1,024 characters only after `? `.
    start = f"{indent}{name}:" if len(name) < _LONGEST_KEY else f"{indent}? {name}\n{indent}:"
    yield from _value(start, value, indent)


def _value(start: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield start
        for key, inner in value.items():
            yield from pair_lines(key, inner, indent + "  ")
    elif isinstance(value, list) and value:
        yield start
        for item in value:
            yield from _item(item, indent + "  ")
    elif isinstance(value, Mapping | list):
        yield f"{start} {'[]' if isinstance(value, list) else '{}'}"
    else:
        yield f"{start} {scalar_yaml(value)}"


def _item(value: Any, indent: str) -> Iterator[str]:
    if not isinstance(value, Mapping | list) or not value:
        yield from _value(f"{indent}-", value, indent)
        return
    # The first line of a nested value follows the dash.
    deeper = indent + "  "
    if isinstance(value, Mapping):
        parts = [pair_lines(key, inner, deeper) for key, inner in value.items()]
    else:
        parts = [_item(inner, deeper) for inner in value]
    lines = itertools.chain.from_iterable(parts)
    yield f"{indent}- {next(lines).removeprefix(deeper)}"
    yield from lines
