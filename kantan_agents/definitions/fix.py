"""A repaired file written as valid YAML, with as little changed as possible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kantan_agents.definitions.definition import AgentDefinition
from kantan_agents.definitions.frontmatter.colours import HEX
from kantan_agents.definitions.frontmatter.document import Document
from kantan_agents.definitions.frontmatter.keys import LIMITS, field_of
from kantan_agents.definitions.frontmatter.reading import Reading, taken_apart
from kantan_agents.definitions.frontmatter.repair import Field
from kantan_agents.definitions.frontmatter.values import is_null
from kantan_agents.definitions.frontmatter.writing import field_lines, front_lines, pair_lines

_BREAK: Final = re.compile(r"\r\n|\n|\r")
_BREAK_AFTER: Final = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_YAML_BREAK: Final = re.compile("[\x85\u2028\u2029]")


def mended(text: str) -> str | None:
    """Return the text of a repaired file as valid YAML that says the same.

    Only the fields that are not valid are written anew. The prompt, comments, the order of the keys and
    the file's line ends stay. What does not count becomes a comment: a line that belongs to no field, and
    all but one of the broken values that one field has.

    Args:
        text: The text of the file, its line ends untouched.

    Returns:
        The text; None if the file needed no repair, or if a field that should hold data is broken inside,
        so that nobody can say what it means.

    Raises:
        AgentFileError: E30; the text cannot be read at all.
        InvalidDefinitionError: E31; what it says is no definition.
    """
    reading = taken_apart(text, None)
    if not reading.repairs or (reading.repair and any(field.is_guessed for field in reading.repair.fields)):
        return None
    definition = AgentDefinition.loads(text)
    document = reading.document
    found = _BREAK.search(document.head)
    newline = found[0] if found else "\n"
    front = _front(reading, definition, newline)
    result = _joined(text, document, front, newline)
    if _says(result, definition):
        return result
    # Such as two documents, whose fields are valid one by one: then all of it is written anew.
    result = _joined(text, document, "".join(line + newline for line in front_lines(definition)), newline)
    return result if _says(result, definition) else None


def _says(text: str, definition: AgentDefinition) -> bool:
    try:
        read = AgentDefinition.loads(text)
    except ValueError:
        return False
    return read == definition and not read.is_repaired


def _joined(text: str, document: Document, front: str, newline: str) -> str:
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    between = newline if front and not front.endswith(("\n", "\r")) else ""
    tail = document.tail or f"---{newline}{newline if document.prompt else ''}"
    return f"{bom}{document.head}{front}{between}{tail}{document.prompt}"


def _front(reading: Reading, definition: AgentDefinition, newline: str) -> str:
    front = reading.document.front
    if reading.repair is not None:
        counting = _counting(reading.repair.fields, definition)
        return "".join(_field(front, field, counting, definition, newline) for field in reading.repair.fields)
    for index, _ in sorted(reading.repairs, reverse=True):
        colour = HEX.match(front, index)
        if colour:
            front = f'{front[: colour.start(1)]}"{colour[1]}"{front[colour.end(1) :]}'
    return front


def _counting(fields: list[Field], definition: AgentDefinition) -> frozenset[int]:
    """Return the indexes of the entries that are to be written where they are not valid.

    Lists of tools add up, so the first broken one is written and says it all. Of anything else the last
    value counts.
    """
    found: dict[str, int] = {}
    for field in fields:
        for entry in field.entries:
            meant = field_of(entry.key) if entry.key not in definition.extra else None
            if meant in LIMITS:
                if not field.is_valid:
                    found.setdefault(meant or "", entry.index)
            elif meant is None or not is_null(entry.node):
                found[meant or f"extra {entry.key}"] = entry.index
    return frozenset(found.values())


def _field(
    front: str, field: Field, counting: frozenset[int], definition: AgentDefinition, newline: str
) -> str:
    source = front[field.piece.start : field.piece.end]
    if field.is_valid:
        return source
    keys = [entry.key for entry in field.entries if entry.index in counting]
    if not keys:
        return "".join(_comment(line) if line.strip() else line for line in _BREAK_AFTER.split(source))
    lines = [*map(_comment, field.comments), *(line for key in keys for line in _lines(key, definition))]
    # The first line end of what is left is that of the field itself.
    _, _, rest = source[len(source.rstrip(" \t\r\n")) :].partition(newline)
    return "".join(line + newline for line in lines) + rest


def _comment(line: str) -> str:
    # What YAML takes for a line end would end the comment.
    return f"# {_YAML_BREAK.sub(' ', line).removeprefix('# ')}"


def _lines(key: str, definition: AgentDefinition) -> Iterator[str]:
    if key in definition.extra:
        return pair_lines(key, definition.extra[key])
    field = field_of(key) or key
    return field_lines(field, key, getattr(definition, field))
