"""The permissions that a plan requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import attrs

from kantan_agents.support.invisible import by_code
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.full_shells import remark_on_entry
from kantan_agents.tool_rules.paths_and_hosts import is_path_pattern, is_rooted
from kantan_agents.toolkit.protected import names_protected

_SHELL: Final = "bash"
_HOSTS: Final = "webfetch"
_FILES: Final = {
    "write": "create or overwrite",
    **dict.fromkeys(("edit", "multiedit"), "change parts of"),
    **dict.fromkeys(("read", "grep", "glob", "ls"), "read"),
}
_EXAMPLES: Final = {_SHELL: "pytest:*", _HOSTS: "domain:example.com", **dict.fromkeys(_FILES, "src/**")}
_PROTECTED: Final = "it names a protected file, which is asked for each time"


@attrs.frozen
class PlanEntry:
    """A requested permission: its ``--yes`` entry, effect and remarks."""

    text: str
    words: str
    remarks: tuple[str, ...] = ()


def read_entries(
    texts: Iterable[str], known: Collection[str]
) -> tuple[tuple[PlanEntry, ...], tuple[str, ...]]:
    """Return valid entries, and the others' problems."""
    entries: list[PlanEntry] = []
    problems: list[str] = []
    for text in dict.fromkeys(one.strip() for one in texts):
        try:
            entries.append(_entry(text, known))
        except ValueError as error:  # noqa: PERF203 - all mistakes are collected
            problems.append(f"{text!r}: {error}")
    return tuple(entries), tuple(problems)


def _entry(text: str, known: Collection[str]) -> PlanEntry:
    if not text.isprintable() or by_code(text, strict=True) != text:
        raise ValueError("it has characters that cannot be seen, or several lines")
    name = text.partition("(")[0].strip()
    if name not in known:
        raise ValueError(f"there is no tool {name}, and one entry names one tool, without wildcards")
    kind = name.casefold()
    ToolRules.parse({"allow": [text]})
    pattern = parse_call_pattern(text) if is_call_pattern(text) else None
    if pattern is None or pattern.form == "any":
        if kind in _EXAMPLES:
            raise ValueError(f"it permits every call; say which, as in {name}({_EXAMPLES[kind]})")
        return PlanEntry(text, f"every call of {name}")
    if kind in _FILES:
        return PlanEntry(text, f"{_FILES[kind]} {_files(pattern)}", _remarks(pattern.path))
    if kind == _HOSTS:
        return PlanEntry(text, f"fetch pages of {_hosts(pattern)}")
    if kind == _SHELL:
        how = "run exactly" if pattern.form == "exact" else "run commands that begin with"
        remarks = _remarks(pattern.argument, remark_on_entry(text))
        return PlanEntry(text, f"{how}: {pattern.argument}", remarks)
    how = "with" if pattern.form == "exact" else "that begin with"
    return PlanEntry(text, f"calls of {name} {how}: {pattern.argument}")


def _files(pattern: CallPattern) -> str:
    path = pattern.path
    if pattern.form == "prefix" or is_rooted(path) or ".." in path.split("/"):
        raise ValueError("it must be a path in the folder, relative to it, such as src/** or docs/a.md")
    if not is_path_pattern(path):
        return f"the file {path}"
    folder = path.removesuffix("**")
    if folder != path and not is_path_pattern(folder):
        return f"every file in {folder} and below" if folder else "every file in the folder and below"
    return f"every file that matches {path}"


def _hosts(pattern: CallPattern) -> str:
    if pattern.form != "domain" or "." not in pattern.argument.removeprefix("*."):
        raise ValueError(f"it must name a host, as in WebFetch({_EXAMPLES[_HOSTS]})")
    below = pattern.argument.removeprefix("*.")
    return below if below == pattern.argument else f"every host below {below}"


def _remarks(argument: str, *others: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (*others, _PROTECTED if names_protected(argument) else None)))
