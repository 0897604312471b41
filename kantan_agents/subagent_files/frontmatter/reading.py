"""Reads a subagent file into a definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from kantan_agents.subagent_files.frontmatter.closing import end_frontmatter
from kantan_agents.subagent_files.frontmatter.comments import repair_colors, truncated_texts
from kantan_agents.subagent_files.frontmatter.document import (
    MAX_FRONTMATTER_CHARS,
    Document,
    decode,
    split_document,
)
from kantan_agents.subagent_files.frontmatter.doubtful_grants import refuse_doubtful_grants
from kantan_agents.subagent_files.frontmatter.entries import REQUIRED, Entry, ParsedFields, parse_fields
from kantan_agents.subagent_files.frontmatter.keys import FIELD_OF, KEY_OF, LIMITS, field_of
from kantan_agents.subagent_files.frontmatter.limits import refuse_swallowed
from kantan_agents.subagent_files.frontmatter.nodes import (
    Fields,
    NotYamlError,
    RefusedYamlError,
    Scalar,
    parse,
)
from kantan_agents.subagent_files.frontmatter.pieces import KNOWN, has_known_key
from kantan_agents.subagent_files.frontmatter.repair import RepairedFrontmatter, repair_frontmatter
from kantan_agents.subagent_files.frontmatter.values import is_null, merged_pairs
from kantan_agents.subagent_files.problems import Problem

D = TypeVar("D")
_BLANK: Final = re.compile(r"\s*")
_NOT_CLOSED: Final = "the frontmatter has no closing line '---'"


@attrs.frozen
class ParsedFile:
    """The parts and entries of a file; valid YAML has no ``repair``."""

    document: Document
    entries: list[Entry]
    repair: RepairedFrontmatter | None
    repairs: list[tuple[int, str]]


def read_definition(
    make: Callable[..., D], text: str | bytes, path: Path | None, required: Sequence[str] = REQUIRED
) -> D:
    """Return the definition in a file with frontmatter; the error lists all mistakes."""
    parsed = parse_file(text, path)
    document = parsed.document
    fields = parse_fields(parsed.entries, required)
    if fields.errors:
        raise _definition_error(fields.errors, fields, document, path)
    notes = [
        *((at, message, True) for at, message in parsed.repairs),
        *((at, message, False) for at, message in fields.warnings),
        *((at, message, False) for at, message in truncated_texts(document.front, parsed.entries)),
        *((at, message, False) for at, message in _limit_in_prompt(document, fields)),
    ]
    problems = [
        Problem(
            path=path, line=document.line_at(at), message=message, severity="warning", is_repair=is_repair
        )
        for at, message, is_repair in sorted(notes)
    ]
    values: dict[str, Any] = {
        "system_prompt": document.prompt,
        **fields.values,
        "path": path,
        "notes": problems,
    }
    try:
        return make(**values)
    except InvalidDefinitionError as error:
        parts = (problem.partition(": ") for problem in error.problems)
        errors = [(field, message) for field, _, message in parts]
        raise _definition_error(errors, fields, document, path) from None


def parse_file(text: str | bytes, path: Path | None) -> ParsedFile:
    """Return the parts and entries of a subagent file."""
    document = split_document(decode(text, path), path)
    repairs: list[tuple[int, str]] = []
    try:
        if document.tail is None:
            document = end_frontmatter(document, has_dash_line=False)
            repairs.append((len(document.front), _NOT_CLOSED))
        return _parse(document, repairs, path)
    except RefusedYamlError as error:
        raise InvalidDefinitionError(
            path=path, line=document.line_at(error.index), problems=[error.reason]
        ) from None


def _parse(document: Document, repairs: list[tuple[int, str]], path: Path | None) -> ParsedFile:
    if len(document.front) > MAX_FRONTMATTER_CHARS:
        reason = f"its frontmatter is longer than {MAX_FRONTMATTER_CHARS // 1024} kB"
        raise AgentFileError(path=path, line=document.line, reason=reason)
    try:
        root = parse(document.front)
    except NotYamlError as error:
        return _parse_repaired(document, repairs, error, path)
    if root is None or (isinstance(root, Scalar) and is_null(root)):
        root = Fields([], 0)
    if not isinstance(root, Fields):
        problem = f"the frontmatter is {'text' if isinstance(root, Scalar) else 'a list'}, not a mapping"
        if isinstance(root, Scalar) and root.style is None and has_known_key(document.front):
            # To YAML, `name:a` is a string, and so is `name:` followed by a no-break space.
            return _parse_repaired(document, repairs, NotYamlError(root.index, problem), path)
        raise InvalidDefinitionError(path=path, line=document.line_at(root.index), problems=[problem])
    entries = [Entry(key.text, value, key.index) for key, value in merged_pairs(root)]
    refuse_swallowed(document.front, {field_of(entry.key) for entry in entries})
    if document.tail is None:
        refuse_doubtful_grants(document.front, root, entries)
    entries, color_repairs = repair_colors(document.front, entries)
    return ParsedFile(document, entries, None, repairs + color_repairs)


def _parse_repaired(
    document: Document, repairs: list[tuple[int, str]], error: NotYamlError, path: Path | None
) -> ParsedFile:
    reason = f"is not valid YAML: {error.reason}"
    shorter = end_frontmatter(document, has_dash_line=True) if document.tail is not None else document
    if shorter is not document:
        repairs = [(len(shorter.front), _NOT_CLOSED)]
        return _parse(shorter, repairs, path)
    repair = repair_frontmatter(document.front, is_closed=document.tail is not None)
    if not any(field_of(entry.key) for entry in repair.entries):
        raise AgentFileError(
            path=path, line=document.line_at(error.index), reason=f"its frontmatter {reason}"
        )
    causes = repairs + repair.causes or [(error.index, f"the frontmatter {reason}")]
    return ParsedFile(document, repair.entries, repair, causes)


def _limit_in_prompt(document: Document, fields: ParsedFields) -> Iterator[tuple[int, str]]:
    blank = _BLANK.match(document.prompt)
    key = KNOWN.match(document.prompt, blank.end() if blank else 0)
    if key and FIELD_OF[key[1]] in LIMITS and FIELD_OF[key[1]] not in fields.values:
        yield len(document.front), f"{key[1]}: is below the frontmatter, so it has no effect"


def _definition_error(
    errors: list[tuple[str, str]], fields: ParsedFields, document: Document, path: Path | None
) -> InvalidDefinitionError:
    # A missing field has the line that opens the frontmatter.
    positions = [fields.positions[field] for field, _ in errors if field in fields.positions]
    line = document.line_at(min(positions)) if positions else max(1, document.line - 1)
    problems = [f"{KEY_OF.get(field, field)}: {message}" for field, message in errors]
    return InvalidDefinitionError(path=path, line=line, problems=problems)
