"""Writes the table of all public names into docs/reference/api.md, so that the page is readable as plain Markdown.

Run it after changing the page or the first sentence of a docstring:

    python docs/api_table.py

The names come from the `:::` lines of the page, and the kinds and summaries from the code. As for the site, griffe
reads the code without importing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import griffe

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "api.md"
BEGIN = "<!-- names, written by python docs/api_table.py -->"
END = "<!-- end of names -->"

_SECTION = re.compile(r"^## (?P<package>kantan_agents[\w.]*)$", re.MULTILINE)
_ENTRY = re.compile(
    r"^(?:::: (?P<path>[\w.]+)\n(?P<options>(?:    .*\n)*)|### (?P<reexported>[\w, ]+?) \{)",
    re.MULTILINE,
)
_REEXPORTED = "The SDK's own function, re-exported."


class Name(NamedTuple):
    """One row of the table."""

    name: str
    kind: str
    package: str
    summary: str


def names(page: str, root: Path = ROOT) -> list[Name]:
    """Return all names that ``page`` documents, by package and in alphabetical order.

    Raises:
        KeyError: A `:::` line names something that does not exist.
    """
    code = griffe.load("kantan_agents", search_paths=[root])
    parts = _SECTION.split(page.partition(BEGIN)[0] + page.partition(END)[2])
    found: list[Name] = []
    for package, text in zip(parts[1::2], parts[2::2], strict=True):
        found += sorted(
            _names_of(code, package, text), key=lambda name: name.name.casefold()
        )
    return found


def table(page: str, root: Path = ROOT) -> str:
    """Return the table of the names of ``page``."""
    rows = ["| Name | Kind | Summary | Package |", "| --- | --- | --- | --- |"]
    rows += [
        f"| `{name}` | {kind} | {summary} | `{package}` |"
        for name, kind, package, summary in names(page, root)
    ]
    return "\n".join(rows)


def written(page: str, root: Path = ROOT) -> str:
    """Return ``page`` with an up-to-date table.

    Raises:
        ValueError: The page has no marks for the table.
    """
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"the page needs a line {BEGIN} and then a line {END}")
    return f"{before}{BEGIN}\n{table(page, root)}\n{END}{after}"


def _names_of(
    code: griffe.Object | griffe.Alias, package: str, text: str
) -> Iterator[Name]:
    for entry in _ENTRY.finditer(text):
        if entry["path"] is None:
            for name in entry["reexported"].split(", "):
                yield Name(name, "function", package, _REEXPORTED)
            continue
        documented = code[entry["path"].partition(".")[2]]
        if isinstance(documented, griffe.Alias):
            documented = documented.final_target
        if not documented.is_module:
            # A name that its package does not export is imported from its module.
            exported = documented.name in code.modules_collection[package].members
            yield _name(documented, package if exported else documented.module.path)
            continue
        shown = _filtered(entry["options"])
        for member in documented.members.values():
            if not member.is_alias and member.docstring and shown(member.name):
                yield _name(member, package)


def _filtered(options: str) -> Callable[[str], bool]:
    """Return a predicate for the names that pass the ``filters`` of an entry, each of which excludes names."""
    hidden = [re.compile(pattern[1:]) for pattern in re.findall(r'"(![^"]+)"', options)]
    return lambda name: not any(pattern.search(name) for pattern in hidden)


def _name(documented: griffe.Object | griffe.Alias, package: str) -> Name:
    return Name(documented.name, _kind(documented), package, _summary(documented))


def _kind(documented: griffe.Object | griffe.Alias) -> str:
    if isinstance(documented, griffe.Class):
        return "exception" if _is_exception(documented) else "class"
    if documented.is_attribute:
        return "constant" if documented.name.isupper() else "type"
    return str(documented.kind.value)


def _is_exception(documented: griffe.Class) -> bool:
    """Whether a class has a base that is named like an exception."""
    return any(
        re.search(r"(Error|Exception|Warning)$", str(base)) for base in documented.bases
    )


def _summary(documented: griffe.Object | griffe.Alias) -> str:
    docstring = documented.docstring.value if documented.docstring else ""
    summary = " ".join(docstring.partition("\n\n")[0].split())
    summary = re.sub(r" \(spec [^)]*\)", "", summary)
    return summary.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    text = written(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(PAGE.relative_to(ROOT))
