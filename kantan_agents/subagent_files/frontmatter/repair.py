"""Repairs invalid frontmatter: each invalid field except tool lists becomes a string."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kantan_agents.subagent_files.frontmatter.causes import explain_invalid_field
from kantan_agents.subagent_files.frontmatter.comments import repair_colors
from kantan_agents.subagent_files.frontmatter.doubtful_grants import refuse_doubtful_lines
from kantan_agents.subagent_files.frontmatter.entries import Entry
from kantan_agents.subagent_files.frontmatter.keys import DATA, LISTS, PROSE, field_of
from kantan_agents.subagent_files.frontmatter.limits import refuse_limits
from kantan_agents.subagent_files.frontmatter.nodes import (
    KEY_NOT_TEXT,
    MARKER,
    Fields,
    Items,
    Node,
    NotYamlError,
    RefusedYamlError,
    Scalar,
    parse,
)
from kantan_agents.subagent_files.frontmatter.pieces import DIALOGUE, SPACES, Piece, split_fields
from kantan_agents.subagent_files.frontmatter.values import MERGE
from kantan_agents.subagent_files.tool_lists import ALL, split_at, split_text, strip_wrapping

_AFTER_COLON: Final = re.compile(rf"(?<=:)[{SPACES}]+")
_INDENT: Final = re.compile(rf"(?m)^[{SPACES}]+")
_BREAKS: Final = re.compile(r"\r\n|\r")
_BLOCK: Final = re.compile(r"[|>][-+0-9]{0,2}[ \t]*\n")
_ANY_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=[ \t]))#.*$")
_ANCHOR: Final = re.compile(r"(?<![^\s,\[{])&([^\s,\[\]{}]+)")
_ALIAS: Final = re.compile(r"(?<![^\s,\[{:])\*([^\s,\[\]{}]+)")
_MERGE_KEY: Final = re.compile(r"(?m)^[ \t]*(?:-[ \t]+)*[\"']?<<[\"']?[ \t]*:")
_NOT_MERGED: Final = (
    "the merge key '<<' is not supported in a file that is not valid YAML; write out its keys"
)
_LIKE_DATA: Final = re.compile(
    rf"[{SPACES}]*(?:[\[{{]|\n\s*(?:-[{SPACES}]|[\w.-]+[{SPACES}]*:(?:[{SPACES}\n]|\Z)))"
)

MAX_LINES: Final = 10_000
MAX_FIELDS: Final = 1000
"""A frontmatter with more lines or pieces is not repaired."""

_AS_SPACES: Final = {"\t": "  ", "\u00a0": " ", "\u202f": " "}
_COMMENT: Final = re.compile(r"(?m)(?<=\S)[ \t]+#.*$")  # after a value
_BULLET: Final = re.compile(rf"-(?:[{SPACES}]+|\Z)|[*+\u2022](?:[{SPACES}]+(?=\S))")
_STAR: Final = re.compile(rf"\*[{SPACES}]")


@attrs.frozen
class Field:
    """One parsed piece; invalid data becomes a string with ``is_text_fallback``."""

    piece: Piece
    entries: list[Entry]
    is_valid: bool
    comments: list[str] = attrs.field(factory=list)
    is_text_fallback: bool = False

    @property
    def is_unambiguous(self) -> bool:
        """Whether no line can be a separate key."""
        nodes = (entry.node for entry in self.entries)
        return self.is_valid and not any(
            isinstance(node, Scalar) and node.style not in ("|", ">") for node in nodes
        )

    @property
    def ranges(self) -> Iterator[tuple[Entry, int]]:
        """Its entries, each with the index after its last line."""
        ends = [*(entry.index for entry in self.entries[1:]), self.piece.end]
        return zip(self.entries, ends, strict=False)


@attrs.frozen
class RepairedFrontmatter:
    """The fields of a frontmatter, and its mistakes as (index, message)."""

    fields: list[Field]
    causes: list[tuple[int, str]]

    @property
    def entries(self) -> list[Entry]:
        """The entries of all fields."""
        return [entry for field in self.fields for entry in field.entries]


def repair_frontmatter(front: str, *, is_closed: bool) -> RepairedFrontmatter:
    """Return the fields of invalid frontmatter; reject unclear ones."""
    if front.count("\n") + front.count("\r") > MAX_LINES:
        raise RefusedYamlError(0, f"is not valid YAML and is longer than {MAX_LINES} lines")
    split = split_fields(front)
    if len(split.pieces) > MAX_FIELDS:
        raise RefusedYamlError(split.pieces[MAX_FIELDS].start, f"has more than {MAX_FIELDS} fields")
    anchors = frozenset(_ANCHOR.findall(front)) if "&" in front else frozenset()
    fields, causes = [], list(split.warnings)
    for piece in split.pieces:
        field, cause = _parse_piece(front, piece, anchors)
        fields.append(field)
        if cause is not None:
            causes.append((piece.start + cause[0], cause[1]))
    names = {field_of(entry.key) for field in fields for entry in field.entries}
    for field in fields:
        if not field.is_unambiguous:
            refuse_limits(front[field.piece.start : field.piece.end], names, field.piece.start)
        for entry, end in field.ranges:
            if field_of(entry.key) == "tools":
                refuse_doubtful_lines(front, entry.index, end, is_closed=is_closed)
    return RepairedFrontmatter(fields, causes)


def _parse_piece(front: str, piece: Piece, anchors: frozenset[str]) -> tuple[Field, tuple[int, str] | None]:
    source = front[piece.start : piece.end]
    if piece.key is None:
        is_comment = all(line.startswith("#") or not line.strip() for line in source.splitlines())
        cause = None if is_comment else (0, "this line belongs to no field and is ignored")
        return Field(piece, [], is_comment), cause
    try:
        entries, color_repairs = repair_colors(source, _parse_yaml(source, piece), piece.start)
    except NotYamlError as error:
        reason = error.reason
    else:
        return Field(piece, entries, not color_repairs), (0, color_repairs[0][1]) if color_repairs else None
    colon = piece.colon - piece.start
    value = source[colon:]
    name = field_of(piece.key)
    if reason == MARKER and name in LISTS | DATA:
        raise RefusedYamlError(piece.colon, KEY_NOT_TEXT)
    is_prose = name in PROSE or name == "context"
    _refuse_references(source, value, piece.start, anchors, in_prose=is_prose)
    at, message = explain_invalid_field(piece.key, source, value, reason)
    try:
        entries, is_text_fallback = _parse_yaml(_normalize_spaces(source, colon), piece), False
    except NotYamlError:
        text = _dedent(_BREAKS.sub("\n", value))
        entries = [Entry(piece.key, _to_node(name, text), piece.start)]
        is_text_fallback = name in DATA and (name != "context" or bool(_LIKE_DATA.match(text)))
    if is_text_fallback:
        message += "; kept as text"
    comments = [] if is_prose else _ANY_COMMENT.findall(_BREAKS.sub("\n", value))
    field = Field(piece, entries, is_valid=False, comments=comments, is_text_fallback=is_text_fallback)
    return field, (at, message)


def _refuse_references(
    source: str, value: str, offset: int, anchors: frozenset[str], *, in_prose: bool
) -> None:
    """Reject merge keys and aliases, which a repair by field cannot resolve.

    In prose, ``*`` is usually not an alias.
    """
    merge = _MERGE_KEY.search(source) if "<<" in source else None
    if merge:
        raise RefusedYamlError(offset + merge.start(), _NOT_MERGED)
    if not anchors:
        return
    value_offset = offset + len(source) - len(value)
    for found in _ALIAS.finditer(value):
        if found[1] in anchors and not (in_prose and value[: found.start()].strip()):
            name = found[1][:60]
            message = f"the alias *{name} is not supported in a file that is not valid YAML; write it out"
            raise RefusedYamlError(value_offset + found.start(), message)
        if in_prose:
            return


def _parse_yaml(source: str, piece: Piece) -> list[Entry]:
    try:
        root = parse(source)
    except RefusedYamlError as error:
        raise RefusedYamlError(piece.start + error.index, error.reason) from None
    if not isinstance(root, Fields) or not root.pairs or root.pairs[0][0].text != piece.key:
        raise NotYamlError(0, "is not a key with a value")
    merge = next((key for key, _ in root.pairs if key.text == MERGE and key.style is None), None)
    if merge is not None:
        raise RefusedYamlError(piece.start + merge.index, _NOT_MERGED)
    if field_of(piece.key) in PROSE and _continues_unindented(root):
        raise NotYamlError(0, "continues on lines that are not indented")
    return [Entry(key.text, node, piece.start + key.index) for key, node in root.pairs]


def _continues_unindented(root: Fields) -> bool:
    # A line `user: ...` below a description is part of it, and so are all lines after an empty one.
    others = [key.text.lower() for key, _ in root.pairs[1:]]
    first = root.pairs[0][1]
    is_empty = isinstance(first, Scalar) and not first.text.strip()
    return bool(others) and (is_empty or not DIALOGUE.isdisjoint(others))


def _normalize_spaces(source: str, colon: int) -> str:
    value = _AFTER_COLON.sub(" ", f":{source[colon:]}", count=1)[1:]
    if value[:1] not in (" ", "\r", "\n", ""):
        value = f" {value}"
    key = source[: colon - 1].rstrip(SPACES)
    return f"{key}:" + _INDENT.sub(lambda found: "".join(_AS_SPACES.get(c, c) for c in found[0]), value)


def _to_node(field: str | None, text: str) -> Node:
    if field in LISTS:
        return _parse_broken_list(text, is_denied=field == "disallowed_tools")
    if field == "model" and text.lstrip().startswith("["):
        return _parse_broken_list(text, is_denied=False)
    if field not in PROSE and field not in DATA:
        text = _COMMENT.sub("", text)
    text = unquote(text.strip())
    return Scalar(text, 0, '"' if text else None)


def _dedent(value: str) -> str:
    value = _BLOCK.sub("\n", value.lstrip(SPACES), count=1) if _BLOCK.match(value.lstrip(SPACES)) else value
    first, newline, rest = value.partition("\n")
    return first.strip() + newline + textwrap.dedent(rest)


def unquote(text: str) -> str:
    """Strip quotes, or an opening quote that is not closed."""
    quote = text[:1]
    if quote not in ("'", '"'):
        return text
    inner = text[1:]
    if len(text) == 1 or not inner.endswith(quote) or inner.endswith(f"\\{quote}"):
        if _closes_early(inner, quote):
            return text
        return _unescape(inner, quote).strip()
    inner = inner[:-1]
    return text if _closes_early(inner, quote) else _unescape(inner, quote)


def _closes_early(inner: str, quote: str) -> bool:
    # True for: "a" and "b". False for: "say "hello" now".
    found = re.search(rf"(?<!\\){quote}", inner)
    if found is None:
        return False
    before, after = inner[: found.start()], inner[found.end() :]
    return bool(before) and not before[-1].isspace() and before[-1] not in "([{" and not after[:1].isalnum()


def _unescape(text: str, quote: str) -> str:
    return text.replace('\\"', '"') if quote == '"' else text.replace("''", "'")


def _parse_broken_list(text: str, *, is_denied: bool) -> Node:
    """For denied tools every word is an entry, since entries that are not names are rejected later."""
    first, *below = (line.strip(SPACES) for line in _COMMENT.sub("", text).split("\n"))
    lines = [line for line in (first, *below) if not line.startswith("#")]
    if is_denied and _STAR.match(first) and not any(map(_STAR.match, below)):
        return _items([ALL])
    is_listed = any(map(_BULLET.match, lines))
    items = [_BULLET.sub("", line, count=1) for line in lines] if is_listed else [" ".join(lines)]
    if is_denied:
        return _items(item.replace('\\"', '"') for item in items)
    if not is_listed:
        whole = items[0].strip().removeprefix("[").removesuffix("]")
        items = list(split_at(whole, commas=True))
        if len(items) == 1:
            # Without commas, the reader of the field splits at white space later.
            return Scalar(" ".join(map(strip_wrapping, split_text(whole))), 0, '"')
    return _items(strip_wrapping(part) for item in items for part in split_at(item, commas=True))


def _items(names: Iterable[str]) -> Items:
    return Items([Scalar(name, 0, '"') for name in names if name], 0)
