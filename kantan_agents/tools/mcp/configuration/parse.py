"""Parses a configuration file's data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from kantan_agents.support.nearest import nearest
from kantan_agents.tools.mcp.configuration.entry import (
    START_SECONDS,
    TIMEOUT_SECONDS,
    ServerEntry,
    ServerSource,
    Transport,
)
from kantan_agents.tools.mcp.configuration.variables import reference_mistakes

_LONGEST_NAME = 40  # with tool names, within the 64 letters that providers accept
_MOST_SERVERS = 1_000
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LONGEST_SECONDS = 3600
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_VARIABLE = re.compile(r"[^=\x00-\x20\x7f]+")  # programs have names such as `ProgramFiles(x86)`
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TRANSPORTS: Final[Mapping[str, Transport]] = {
    "stdio": "stdio",
    "sse": "sse",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
}
_OF_ALL = frozenset({"type", "description", "disabled", "resources", "timeout_seconds", "start_seconds"})
_OF_STDIO = frozenset({"command", "args", "env", "cwd"})
_OF_HTTP = frozenset({"url", "headers"})
# Keys of other programs.
_READ_AS: Final[Mapping[str, str]] = {"serverUrl": "url", "httpUrl": "url", "transport": "type"}
_APPROVALS = "has no effect: the program that runs the agent decides about approvals"
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "autoApprove": _APPROVALS,
    "alwaysAllow": _APPROVALS,
    "timeout": "has no effect: it is in seconds or in milliseconds; write timeout_seconds",
}


@attrs.frozen
class Parsed:
    """Servers, including those with mistakes; ``fault`` is why there are none."""

    entries: tuple[ServerEntry, ...]
    fault: str | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Every mistake."""
        mistakes = (mistake for entry in self.entries for mistake in entry.mistakes)
        return (*(() if self.fault is None else (self.fault,)), *mistakes)


def parse_servers(servers: Any, source: ServerSource, place: str) -> Parsed:
    """Return the servers of a mapping; ``place`` is its path in the file."""
    if not isinstance(servers, Mapping):
        return Parsed((), f"{place}: must map names of servers to their configuration, {_not_a(servers)}")
    if len(servers) > _MOST_SERVERS:
        return Parsed((), f"{place}: has more than {_MOST_SERVERS} servers")
    entries: list[ServerEntry] = []
    seen: dict[str, Any] = {}
    for name, options in servers.items():
        where = f"{place}.{name}"
        read, remarks = _as_here(options)
        mistake = name_mistake(name)
        alike = seen.setdefault(_folded(name), name)
        if mistake is None and alike != name:
            mistake = f"differs from {alike!r} only by case or by . - _, so that people would confuse them"
        mistakes = [f"{where}: {mistake}"] if mistake else []
        mistakes += [f"{where}{one}" for one in _mistakes_of(read)]
        if mistakes:
            entries.append(ServerEntry(str(name), "stdio", source, mistakes=tuple(mistakes)))
        else:
            remarks = [f"{where}{one}" for one in remarks]
            entries.append(attrs.evolve(_entry(name, read, source), remarks=tuple(remarks)))
    return Parsed(tuple(entries))


def _as_here(options: Any) -> tuple[Any, list[str]]:
    """Return this library's keys, and a remark about each other key."""
    if not isinstance(options, Mapping):
        return options, []
    read, remarks = dict(options), []
    for key in options:
        if key in _WITHOUT_EFFECT:
            del read[key]
            remarks.append(f".{key}: {_WITHOUT_EFFECT[key]}")
        elif key in _READ_AS and _READ_AS[key] not in read:
            read[_READ_AS[key]] = read.pop(key)
            remarks.append(f".{key}: read as {_READ_AS[key]}")
    return read, remarks


def name_mistake(name: Any) -> str | None:
    """Return why the name is invalid."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        return "a name must consist of letters, digits and . - _, and begin and end with a letter or digit"
    if len(name) > _LONGEST_NAME:
        return f"a name may have {_LONGEST_NAME} characters"
    if "__" in name:
        return "a name must not contain __, which separates a server from its tool"
    return None


def _folded(name: Any) -> str:
    return re.sub("[._-]", "", str(name).lower())


def _entry(name: str, options: Mapping[str, Any], source: ServerSource) -> ServerEntry:
    transport = _transport_of(options)
    assert transport is not None  # it has no mistakes
    return ServerEntry(
        name,
        transport,
        source,
        command=options.get("command", ""),
        args=tuple(options.get("args", ())),
        env=dict(options.get("env", {})),
        cwd=options.get("cwd"),
        url=options.get("url", ""),
        headers=dict(options.get("headers", {})),
        timeout_seconds=float(options.get("timeout_seconds", TIMEOUT_SECONDS)),
        start_seconds=float(options.get("start_seconds", START_SECONDS)),
        resources=options.get("resources", True),
        is_disabled=options.get("disabled", False),
    )


def _transport_of(options: Mapping[str, Any]) -> Transport | None:
    given = options.get("type")
    if given is None:
        return "stdio" if "command" in options else "http" if "url" in options else None
    return _TRANSPORTS.get(given) if isinstance(given, str) else None


def _mistakes_of(options: Any) -> Iterator[str]:
    """Yield every mistake in a server's configuration, after its path or ``:``."""
    if not isinstance(options, Mapping):
        yield f": must be a configuration, {_not_a(options)}"
        return
    transport = _transport_of(options)
    yield from _key_mistakes(options, transport)
    if transport == "stdio":
        yield from _text_mistakes(options, "command", is_required=True)
        yield from _list_mistakes(options)
        yield from _env_mistakes(options)
        yield from _cwd_mistakes(options)
    elif transport is not None:
        yield from _text_mistakes(options, "url", is_required=True)
        yield from _url_mistakes(options)
        yield from _header_mistakes(options)
    for key in ("disabled", "resources"):
        if not isinstance(options.get(key, False), bool):
            yield f".{key}: must be true or false, {_not_a(options[key])}"
    yield from _text_mistakes(options, "description", may_have_lines=True)
    for key in ("timeout_seconds", "start_seconds"):
        yield from _seconds_mistakes(options, key)


def _key_mistakes(options: Mapping[str, Any], transport: Transport | None) -> Iterator[str]:
    known = _OF_ALL | (_OF_STDIO if transport == "stdio" else _OF_HTTP if transport else _OF_STDIO | _OF_HTTP)
    if transport is None and "type" in options:
        yield f".type: must be stdio, sse or http, not {options['type']!r:.60}"
    elif transport is None:
        yield ": needs a command, or a url"
    for key in options:
        if key not in known:
            yield f".{key}: {_unknown(str(key), known, transport)}"


def _unknown(key: str, known: frozenset[str], transport: Transport | None) -> str:
    if key in _OF_STDIO | _OF_HTTP:
        return f"is not for a server of the type {transport}"
    near = nearest(key, known)
    return f"is not known{f'; the nearest key is {near!r}' if near else ''}"


def _text_mistakes(
    options: Mapping[str, Any], key: str, *, is_required: bool = False, may_have_lines: bool = False
) -> Iterator[str]:
    if key not in options:
        if is_required:
            yield f".{key}: is missing"
        return
    value = options[key]
    if not isinstance(value, str):
        yield f".{key}: must be text, {_not_a(value)}"
    elif is_required and not value.strip():
        yield f".{key}: must not be empty"
    elif not may_have_lines:
        yield from (f".{key}: {one}" for one in _value_mistakes(value))


def _value_mistakes(value: str) -> Iterator[str]:
    if _CONTROL.search(value):
        yield "has a control character"
    yield from reference_mistakes(value)


def _list_mistakes(options: Mapping[str, Any]) -> Iterator[str]:
    values = options.get("args", [])
    if not isinstance(values, list | tuple):
        yield f".args: must be a list of texts, {_not_a(values)}"
        return
    for number, value in enumerate(values):
        if not isinstance(value, str):
            yield f".args[{number}]: must be text, {_not_a(value)}"
        else:
            # Line ends are usual in arguments that are programs.
            if "\0" in value:
                yield f".args[{number}]: has a null character"
            yield from (f".args[{number}]: {one}" for one in reference_mistakes(value))


def _env_mistakes(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in _pairs(options, "env"):
        if not isinstance(name, str) or _VARIABLE.fullmatch(name) is None:
            yield f".env.{name}: is not the name of a variable"
        elif not isinstance(value, str):
            yield f".env.{name}: must be text, {_not_a(value)}"
        elif "\0" in value:
            yield f".env.{name}: has a null character"
        else:
            yield from (f".env.{name}: {one}" for one in reference_mistakes(value))
    yield from _mapping_mistake(options, "env")


def _cwd_mistakes(options: Mapping[str, Any]) -> Iterator[str]:
    yield from _text_mistakes(options, "cwd")
    if isinstance(options.get("cwd"), str):
        if not options["cwd"].strip():
            yield ".cwd: must not be empty"
        if "${" in options["cwd"]:
            yield ".cwd: cannot refer to a variable"


def _url_mistakes(options: Mapping[str, Any]) -> Iterator[str]:
    url = options.get("url")
    if not isinstance(url, str) or not url.strip() or url.startswith("${"):
        return  # of another kind, or only known after expansion
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.netloc)
    except ValueError:
        is_web = False
    if not is_web or " " in url:
        yield ".url: must be the address of a server, such as https://mcp.example.com/mcp"


def _header_mistakes(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in _pairs(options, "headers"):
        if not isinstance(name, str) or _HEADER.fullmatch(name) is None:
            yield f".headers.{name}: is not the name of a header"
        elif not isinstance(value, str):
            yield f".headers.{name}: must be text, {_not_a(value)}"
        else:
            yield from (f".headers.{name}: {one}" for one in _value_mistakes(value))
            if not value.isascii():
                yield f".headers.{name}: must be ASCII"
    yield from _mapping_mistake(options, "headers")


def _seconds_mistakes(options: Mapping[str, Any], key: str) -> Iterator[str]:
    value = options.get(key, 1)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= _LONGEST_SECONDS:
        shown = f"not {value!r:.20}" if is_number else _not_a(value)
        yield f".{key}: must be a number of seconds up to {_LONGEST_SECONDS}, {shown}"


def _pairs(options: Mapping[str, Any], key: str) -> Sequence[tuple[Any, Any]]:
    values = options.get(key)
    return list(values.items()) if isinstance(values, Mapping) else ()


def _mapping_mistake(options: Mapping[str, Any], key: str) -> Iterator[str]:
    if not isinstance(options.get(key, {}), Mapping):
        yield f".{key}: must map names to texts, {_not_a(options[key])}"


def _not_a(value: Any) -> str:
    """Return only the type: the value may be a misplaced secret."""
    return f"not {'null' if value is None else type(value).__name__}"
