"""Variables: ``${NAME}`` and ``${NAME:-default}``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import attrs

from kantan_agents.tools.mcp.configuration.entry import ServerEntry

_REFERENCE = re.compile(r"\$\{(?P<name>[^{}:]*)(?P<default>:-[^{}]*)?\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@attrs.frozen
class Expanded:
    """Expanded strings; ``values`` of the variables are masked in messages."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    url: str
    headers: Mapping[str, str]
    values: frozenset[str]


def reference_mistakes(text: str) -> Iterator[str]:
    """Yield mistakes in references."""
    if "${" in _REFERENCE.sub("", text):
        yield "has ${ without a reference such as ${NAME} or ${NAME:-default}"
    for found in _REFERENCE.finditer(text):
        if _NAME.fullmatch(found["name"]) is None:
            yield f"refers to {found['name']!r}, which is not the name of a variable"


def variables_of(entry: ServerEntry) -> tuple[str, ...]:
    """Return the variables' names."""
    texts = [text for _, text in _texts(entry)]
    return tuple(dict.fromkeys(found["name"] for text in texts for found in _REFERENCE.finditer(text)))


def missing_variables(
    entry: ServerEntry, environ: Mapping[str, str], allowed: Collection[str]
) -> tuple[str, ...]:
    """Return what prevents the expansion: variables not allowed or set, and unusable values, without them."""
    return tuple(dict.fromkeys(_missing(entry, environ, allowed)))


def _missing(entry: ServerEntry, environ: Mapping[str, str], allowed: Collection[str]) -> Iterator[str]:
    for place, text in _texts(entry):
        usable = True
        for found in _REFERENCE.finditer(text):
            name, default = found["name"], found["default"]
            if name not in allowed:
                yield f"{name} may not be read ({place})"
            elif environ.get(name) is None and default is None:
                yield f"{name} is not set ({place})"
            else:
                continue
            usable = False
        if not usable:
            continue
        value = _expanded(text, environ)
        if _CONTROL.search(value) and not _CONTROL.search(text):
            yield f"a value for {place} has a control character"
        if place.startswith("headers.") and not value.isascii():
            yield f"a value for {place} is not ASCII"


def expand(entry: ServerEntry, environ: Mapping[str, str]) -> Expanded:
    """Return a server's strings, after ``missing_variables`` returned nothing."""
    values = {environ[name] for name in variables_of(entry) if environ.get(name)}
    return Expanded(
        _expanded(entry.command, environ),
        tuple(_expanded(text, environ) for text in entry.args),
        {name: _expanded(text, environ) for name, text in entry.env.items()},
        _expanded(entry.url, environ),
        {name: _expanded(text, environ) for name, text in entry.headers.items()},
        frozenset(values),
    )


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    # In one pass: a reference in a value is not expanded.
    return _REFERENCE.sub(lambda found: _value(found, environ), text)


def _value(found: re.Match[str], environ: Mapping[str, str]) -> str:
    value = environ.get(found["name"])
    default = found["default"]
    # As in a shell, the default also replaces an empty value.
    if default is not None and not value:
        return default[2:]
    return value or ""


def _texts(entry: ServerEntry) -> Iterator[tuple[str, str]]:
    yield "command", entry.command
    yield from ((f"args[{number}]", text) for number, text in enumerate(entry.args))
    yield from ((f"env.{name}", text) for name, text in entry.env.items())
    yield "url", entry.url
    yield from ((f"headers.{name}", text) for name, text in entry.headers.items())
