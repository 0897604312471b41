"""Rejects lists of allowed tools that may contain lines of the prompt, so that the prompt grants no tool."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from kantan_agents.subagent_files.frontmatter.entries import Entry
from kantan_agents.subagent_files.frontmatter.keys import field_of
from kantan_agents.subagent_files.frontmatter.nodes import Fields, Items, Node, RefusedYamlError, Scalar
from kantan_agents.subagent_files.frontmatter.pieces import SPACES, lines_of

_ITEM: Final = re.compile(rf"(?:[-*+]|\u2022)(?:[{SPACES}]|[\r\n]|\Z)")
_HAS_VALUE: Final = re.compile(rf"[^:]*:[{SPACES}]*[^\s#]")
_CODE_INDENT: Final = 4

_MAY_BE_PROMPT: Final = (
    "this line may belong to tools or to the prompt; "
    "write the closing line '---' where the frontmatter ends, and all of tools above it without blank lines"
)
_MAY_BE_PROMPT_ABOVE_DASHES: Final = (
    "this line may belong to tools or, as the frontmatter is not valid YAML, to the prompt; "
    "write all of tools without blank lines, and without comments that are not indented"
)
_ELSEWHERE: Final = (
    "tools repeats a value with a YAML alias or merge key, but the closing line '---' is missing"
)


def refuse_doubtful_grants(front: str, root: Fields, entries: Iterable[Entry]) -> None:
    """Reject frontmatter with a guessed end if a line of ``tools`` may belong to the prompt."""
    starts = [key.index for key, _ in root.pairs]
    end_of = dict(itertools.pairwise([*starts, len(front)]))
    for entry in entries:
        if field_of(entry.key) != "tools":
            continue
        end = end_of.get(entry.index)
        if end is None or not all(entry.index <= node.index <= end for node in _scalars(entry.node)):
            raise RefusedYamlError(entry.index, _ELSEWHERE)
        refuse_doubtful_lines(front, entry.index, end, is_closed=False)


def refuse_doubtful_lines(front: str, start: int, end: int, *, is_closed: bool) -> None:
    """Reject a ``tools`` field with a line that may belong to the prompt.

    If ``is_closed``, the closing line may belong to the prompt, so headings and lines below a blank line stay
    doubtful.
    """
    found = _doubtful_line(front[start:end], is_closed=is_closed)
    if found is not None:
        reason = _MAY_BE_PROMPT_ABOVE_DASHES if is_closed else _MAY_BE_PROMPT
        raise RefusedYamlError(start + found, reason)


def _doubtful_line(field: str, *, is_closed: bool) -> int | None:
    has_value = bool(_HAS_VALUE.match(field))
    comment: int | None = None
    below_blank = False
    for line, index, _ in itertools.islice(lines_of(field), 1, None):
        text = line.lstrip(SPACES)
        indent = len(line) - len(text)
        if not text.strip():
            below_blank = True
        elif text.startswith("#") and indent < (1 if is_closed else _CODE_INDENT):
            comment = index if comment is None else comment
        elif comment is not None:
            return comment
        elif below_blank or (not is_closed and not indent and (has_value or not _ITEM.match(text))):
            return index
    return None


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
        return
    for part in node.items if isinstance(node, Items) else (value for _, value in node.pairs):
        yield from _scalars(part)
