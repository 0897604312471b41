"""Rewrites a repaired subagent file as valid YAML (``agents fix``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.frontmatter.comments import HEX_COLOR
from kantan_agents.subagent_files.frontmatter.document import Document
from kantan_agents.subagent_files.frontmatter.keys import LIMITS, field_of
from kantan_agents.subagent_files.frontmatter.reading import ParsedFile, parse_file
from kantan_agents.subagent_files.frontmatter.repair import Field
from kantan_agents.subagent_files.frontmatter.values import is_null
from kantan_agents.subagent_files.frontmatter.writing import field_lines, front_lines, pair_lines

_BREAK: Final = re.compile(r"\r\n|\n|\r")
_BREAK_AFTER: Final = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_YAML_BREAK: Final = re.compile("[\x85\u2028\u2029]")


def fixed_text(text: str) -> str | None:
    """Return a repaired file as valid YAML with the same content; raise E30 and E31.

    Ignored content becomes a comment. None without a repair, and for an invalid data field, whose meaning is
    unknown.
    """
    parsed = parse_file(text, None)
    repair = parsed.repair
    if not parsed.repairs or (repair and any(field.is_text_fallback for field in repair.fields)):
        return None
    definition = AgentDefinition.loads(text)
    document = parsed.document
    found = _BREAK.search(document.head)
    newline = found[0] if found else "\n"
    front = _fixed_front(parsed, definition, newline)
    result = _assemble(text, document, front, newline)
    if _loads_as(definition, result):
        return result
    # With two YAML documents, for example, each field is valid, but not the whole.
    result = _assemble(text, document, "".join(line + newline for line in front_lines(definition)), newline)
    return result if _loads_as(definition, result) else None


def _loads_as(definition: AgentDefinition, text: str) -> bool:
    try:
        loaded = AgentDefinition.loads(text)
    except ValueError:
        return False
    return loaded == definition and not loaded.is_repaired


def _assemble(text: str, document: Document, front: str, newline: str) -> str:
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    between = newline if front and not front.endswith(("\n", "\r")) else ""
    tail = document.tail or f"---{newline}{newline if document.prompt else ''}"
    return f"{bom}{document.head}{front}{between}{tail}{document.prompt}"


def _fixed_front(parsed: ParsedFile, definition: AgentDefinition, newline: str) -> str:
    front = parsed.document.front
    if parsed.repair is not None:
        effective = _effective_entries(parsed.repair.fields, definition)
        return "".join(
            _fixed_field(front, field, effective, definition, newline) for field in parsed.repair.fields
        )
    for index, _ in sorted(parsed.repairs, reverse=True):
        color = HEX_COLOR.match(front, index)
        if color:
            front = f'{front[: color.start(1)]}"{color[1]}"{front[color.end(1) :]}'
    return front


def _effective_entries(fields: list[Field], definition: AgentDefinition) -> frozenset[int]:
    """Return the indexes of the entries to write if their fields are invalid: the last ones.

    For tool lists, the first invalid entry gets the combined value.
    """
    found: dict[str, int] = {}
    for field in fields:
        for entry in field.entries:
            name = field_of(entry.key) if entry.key not in definition.extra else None
            if name in LIMITS:
                if not field.is_valid:
                    found.setdefault(name or "", entry.index)
            elif name is None or not is_null(entry.node):
                found[name or f"extra {entry.key}"] = entry.index
    return frozenset(found.values())


def _fixed_field(
    front: str, field: Field, effective: frozenset[int], definition: AgentDefinition, newline: str
) -> str:
    source = front[field.piece.start : field.piece.end]
    if field.is_valid:
        return source
    keys = [entry.key for entry in field.entries if entry.index in effective]
    if not keys:
        return "".join(_comment(line) if line.strip() else line for line in _BREAK_AFTER.split(source))
    lines = [*map(_comment, field.comments), *(line for key in keys for line in _yaml_lines(key, definition))]
    # Without the line end of the field itself.
    _, _, rest = source[len(source.rstrip(" \t\r\n")) :].partition(newline)
    return "".join(line + newline for line in lines) + rest


def _comment(line: str) -> str:
    # YAML's line ends would end the comment.
    return f"# {_YAML_BREAK.sub(' ', line).removeprefix('# ')}"


def _yaml_lines(key: str, definition: AgentDefinition) -> Iterator[str]:
    if key in definition.extra:
        return pair_lines(key, definition.extra[key])
    field = field_of(key) or key
    return field_lines(field, key, getattr(definition, field))
