"""Broken frontmatter, read field by field: as YAML where a field is that by itself, else as it stands."""

from __future__ import annotations

import re
import textwrap
from typing import Final

import attrs

from kantan_agents.definitions.frontmatter.broken_lists import COMMENT, broken_list
from kantan_agents.definitions.frontmatter.causes import cause
from kantan_agents.definitions.frontmatter.colours import with_colours
from kantan_agents.definitions.frontmatter.entries import Entry
from kantan_agents.definitions.frontmatter.keys import DATA, LISTS, PROSE, field_of
from kantan_agents.definitions.frontmatter.limits import refuse_limits
from kantan_agents.definitions.frontmatter.nodes import (
    Fields,
    Node,
    NotYamlError,
    RefusedYamlError,
    Scalar,
    parse,
)
from kantan_agents.definitions.frontmatter.pieces import DIALOGUE, SPACES, Piece, cut
from kantan_agents.definitions.frontmatter.references import NOT_MERGED, anchors_in, refuse_references
from kantan_agents.definitions.frontmatter.values import MERGE

_AFTER_COLON: Final = re.compile(rf"(?<=:)[{SPACES}]+")
_INDENT: Final = re.compile(rf"(?m)^[{SPACES}]+")
_BREAKS: Final = re.compile(r"\r\n|\r")
_BLOCK: Final = re.compile(r"[|>][-+0-9]{0,2}[ \t]*\n")
_ANY_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=[ \t]))#.*$")
_LIKE_DATA: Final = re.compile(
    rf"[{SPACES}]*(?:[\[{{]|\n\s*(?:-[{SPACES}]|[\w.-]+[{SPACES}]*:(?:[{SPACES}\n]|\Z)))"
)

MOST_LINES: Final = 10_000
MOST_FIELDS: Final = 1000
"""A frontmatter of more lines or pieces than this is not repaired."""


@attrs.frozen
class Field:
    """One piece of a frontmatter, read.

    Attributes:
        piece: Where it stands.
        entries: What it says: one entry, and more if it is YAML with unknown keys in it.
        is_valid: Whether it is YAML as it stands.
        comments: The comments in it that are no part of its value; kept for fields that are not valid.
        is_guessed: Whether it should be data and is kept as the text it is.
    """

    piece: Piece
    entries: list[Entry]
    is_valid: bool
    comments: list[str] = attrs.field(factory=list)
    is_guessed: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether no line of it can have been meant as a key of its own."""
        nodes = (entry.node for entry in self.entries)
        return self.is_valid and not any(
            isinstance(node, Scalar) and node.style not in ("|", ">") for node in nodes
        )


@attrs.frozen
class Repaired:
    """The fields of a frontmatter, and the causes why it is no YAML as (index, words for a person)."""

    fields: list[Field]
    causes: list[tuple[int, str]]

    @property
    def entries(self) -> list[Entry]:
        """What all the fields say."""
        return [entry for field in self.fields for entry in field.entries]


def repaired(front: str) -> Repaired:
    """Return what a frontmatter that is no YAML says.

    Raises:
        RefusedYamlError: A field is YAML by itself, but holds what is refused; or what a field says, or
            which tools may be used, cannot be told.
    """
    if front.count("\n") + front.count("\r") > MOST_LINES:
        raise RefusedYamlError(0, f"is no valid YAML, and longer than {MOST_LINES} lines")
    found = cut(front)
    if len(found.pieces) > MOST_FIELDS:
        raise RefusedYamlError(found.pieces[MOST_FIELDS].start, f"has more than {MOST_FIELDS} fields")
    anchors = anchors_in(front)
    fields, causes = [], list(found.remarks)
    for piece in found.pieces:
        field, why = _read(front, piece, anchors)
        fields.append(field)
        if why is not None:
            causes.append((piece.start + why[0], why[1]))
    read = {field_of(entry.key) for field in fields for entry in field.entries}
    for field in fields:
        if not field.is_clear:
            refuse_limits(front[field.piece.start : field.piece.end], read, field.piece.start)
    return Repaired(fields, causes)


def _read(front: str, piece: Piece, anchors: frozenset[str]) -> tuple[Field, tuple[int, str] | None]:
    source = front[piece.start : piece.end]
    if piece.key is None:
        is_comment = all(line.startswith("#") or not line.strip() for line in source.splitlines())
        why = None if is_comment else (0, "a line that belongs to no field; it is left out")
        return Field(piece, [], is_comment), why
    try:
        entries, colours = with_colours(source, _entries(source, piece), piece.start)
    except NotYamlError as error:
        reason = error.reason
    else:
        return Field(piece, entries, not colours), (0, colours[0][1]) if colours else None
    colon = piece.colon - piece.start
    value = source[colon:]
    means = field_of(piece.key)
    is_prose = means in PROSE or means == "context"
    refuse_references(source, value, piece.start, anchors, in_prose=is_prose)
    at, words = cause(piece.key, source, value, reason)
    try:
        entries, is_guessed = _entries(_with_spaces(source, colon), piece), False
    except NotYamlError:
        text = _dedented(_BREAKS.sub("\n", value))
        entries = [Entry(piece.key, _as_it_stands(means, text), piece.start)]
        is_guessed = means in DATA and (means != "context" or bool(_LIKE_DATA.match(text)))
    if is_guessed:
        words += "; kept as text"
    comments = [] if is_prose else _ANY_COMMENT.findall(_BREAKS.sub("\n", value))
    return Field(piece, entries, is_valid=False, comments=comments, is_guessed=is_guessed), (at, words)


def _entries(source: str, piece: Piece) -> list[Entry]:
    try:
        root = parse(source)
    except RefusedYamlError as error:
        raise RefusedYamlError(piece.start + error.index, error.reason) from None
    if not isinstance(root, Fields) or not root.pairs or root.pairs[0][0].text != piece.key:
        raise NotYamlError(0, "is no key with a value")
    merge = next((key for key, _ in root.pairs if key.text == MERGE and key.style is None), None)
    if merge is not None:
        raise RefusedYamlError(piece.start + merge.index, NOT_MERGED)
    if field_of(piece.key) in PROSE and _goes_on(root):
        raise NotYamlError(0, "goes on over lines that are not indented")
    return [Entry(key.text, node, piece.start + key.index) for key, node in root.pairs]


def _goes_on(root: Fields) -> bool:
    # `user: ...` below a description is part of the description, and so is whatever follows an empty one.
    others = [key.text.lower() for key, _ in root.pairs[1:]]
    first = root.pairs[0][1]
    is_empty = isinstance(first, Scalar) and not first.text.strip()
    return bool(others) and (is_empty or not DIALOGUE.isdisjoint(others))


def _with_spaces(source: str, colon: int) -> str:
    """Return the lines of a field with blanks where tabs and no-break spaces stand for them."""
    value = _AFTER_COLON.sub(" ", f":{source[colon:]}", count=1)[1:]
    if value[:1] not in (" ", "\r", "\n", ""):
        value = f" {value}"
    key = source[: colon - 1].rstrip(SPACES)
    return f"{key}:" + _INDENT.sub(lambda found: "".join(_AS_SPACES.get(c, c) for c in found[0]), value)


_AS_SPACES: Final = {"\t": "  ", "\u00a0": " ", "\u202f": " "}


def _as_it_stands(field: str | None, text: str) -> Node:
    if field in LISTS:
        return broken_list(text, is_denied=field == "disallowed_tools")
    if field not in PROSE and field not in DATA:
        text = COMMENT.sub("", text)
    text = unquoted(text.strip())
    return Scalar(text, 0, '"' if text else None)


def _dedented(value: str) -> str:
    value = _BLOCK.sub("\n", value.lstrip(SPACES), count=1) if _BLOCK.match(value.lstrip(SPACES)) else value
    first, newline, rest = value.partition("\n")
    return first.strip() + newline + textwrap.dedent(rest)


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, and without an opening quote that does not close."""
    quote = text[:1]
    if quote not in ("'", '"'):
        return text
    inner = text[1:]
    if len(text) == 1 or not inner.endswith(quote) or inner.endswith(f"\\{quote}"):
        if _closes_early(inner, quote):
            return text
        return _unescaped(inner, quote).strip()
    inner = inner[:-1]
    return text if _closes_early(inner, quote) else _unescaped(inner, quote)


def _closes_early(inner: str, quote: str) -> bool:
    # In "a" and "b" the first quote is closed before the last one; in "say "hello" now" it is not.
    found = re.search(rf"(?<!\\){quote}", inner)
    if found is None:
        return False
    before, after = inner[: found.start()], inner[found.end() :]
    return bool(before) and not before[-1].isspace() and before[-1] not in "([{" and not after[:1].isalnum()


def _unescaped(text: str, quote: str) -> str:
    return text.replace('\\"', '"') if quote == '"' else text.replace("''", "'")
