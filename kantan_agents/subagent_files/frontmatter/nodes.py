"""A safe YAML parser for frontmatter: scalars stay strings, tags create no objects, size is limited.

It uses PyYAML's events (from the C parser if available): they arrive one by one, so deep nesting cannot
exhaust the interpreter's stack, as PyYAML's nodes can.
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import yaml

DEPTH: Final = 50
MAX_NODES: Final = 100_000
MAX_REPEATED: Final = 10_000
"""Maximum number of nodes repeated by aliases."""

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAGS: Final = frozenset({None, "!", *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))})
# The C parser of PyYAML 6.0.4 looks ahead over brackets, and stops before it reports the first of them.
_TOO_DEEP_FOR_PARSER: Final = "exceeded maximum nesting depth"
_NOT_PRINTABLE: Final = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@attrs.frozen
class Scalar:
    """An unescaped scalar; a plain one has no ``style``.

    If ``keeps_backslashes``, a literal ``\\n`` is intended.
    """

    text: str
    index: int
    style: str | None = None
    keeps_backslashes: bool = False


@attrs.frozen
class Items:
    """A list."""

    items: list[Any]
    index: int


@attrs.frozen
class Fields:
    """A mapping in source order; a key may appear twice."""

    pairs: list[tuple[Scalar, Any]]
    index: int


Node = Scalar | Items | Fields

KEY_NOT_TEXT: Final = "a key is not text"
MARKER: Final = "a text that begins with '{{' must be quoted"


class NotYamlError(Exception):
    """Invalid YAML."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason


class RefusedYamlError(Exception):
    """YAML that a subagent file must not contain."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason


def parse(source: str) -> Node | None:
    """Return the root node, None if ``source`` is empty."""
    unreadable = _NOT_PRINTABLE.search(source)
    if unreadable:
        raise NotYamlError(
            unreadable.start(), f"the character U+{ord(unreadable[0]):04X} is not allowed in YAML"
        )
    loader = None
    try:
        loader = _Loader(source)
        return _Builder(source).build(loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The parser reports an unclosed quote or bracket after the last line.
        index = min(mark.index, len(source.rstrip())) if mark else 0
        if error.problem == _TOO_DEEP_FOR_PARSER:
            raise RefusedYamlError(index, f"is nested deeper than {DEPTH} levels") from error
        raise NotYamlError(index, error.problem or error.context or "is not YAML") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The pure Python parser raises the last two for an escape that is not a character.
        raise NotYamlError(0, str(error)) from error
    finally:
        if loader is not None:
            loader.dispose()


class _Builder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.node_count = 0
        self.repeated_count = 0
        # Open collections: node, anchor, node count before it, key that waits for its value.
        self.stack: list[list[Any]] = []
        self.root: Node | None = None

    def build(self, loader: Any) -> Node | None:
        documents = 0
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self.add(self.scalar(event), event)
            elif kind is yaml.MappingStartEvent:
                self.begin(Fields([], event.start_mark.index), event)
            elif kind is yaml.SequenceStartEvent:
                self.begin(Items([], event.start_mark.index), event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.end(event)
            elif kind is yaml.AliasEvent:
                self.add(self.aliased(event), event, fresh=False)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise NotYamlError(event.start_mark.index, "a second YAML document begins here")
            elif kind is yaml.StreamEndEvent:
                return self.root

    def scalar(self, event: Any) -> Scalar:
        style, value, start = event.style or None, event.value, event.start_mark.index
        self.check(event)
        if style in ("|", ">"):
            return Scalar(value, start, style, keeps_backslashes=True)
        escaped = (
            style == '"' and "\\" in value and "\\x5c" in self.source[start : event.end_mark.index].lower()
        )
        return Scalar(value, start, style, keeps_backslashes=escaped)

    def check(self, event: Any) -> None:
        index = event.start_mark.index
        if event.tag not in _TAGS:
            raise RefusedYamlError(index, f"contains the YAML tag {event.tag[:80]!r}, which is not supported")
        self.node_count += 1
        if self.node_count > MAX_NODES:
            raise RefusedYamlError(index, f"contains more than {MAX_NODES} values")

    def begin(self, node: Items | Fields, event: Any) -> None:
        self.check(event)
        if len(self.stack) >= DEPTH:
            raise RefusedYamlError(node.index, f"is nested deeper than {DEPTH} levels")
        self.stack.append([node, event.anchor, self.node_count, None])

    def end(self, event: Any) -> None:
        node, anchor, before, _ = self.stack.pop()
        if anchor is not None:
            self.anchors[anchor] = (node, self.node_count - before + 1)
        self.add(node, event, fresh=False)

    def aliased(self, event: Any) -> Node:
        index = event.start_mark.index
        if any(anchor == event.anchor for _, anchor, _, _ in self.stack):
            raise RefusedYamlError(index, f"the alias *{event.anchor} is inside the value it repeats")
        if event.anchor not in self.anchors:
            raise NotYamlError(index, f"the alias *{event.anchor} has no anchor")
        node, size = self.anchors[event.anchor]
        # A repeated value counts with its full size, which bounds aliases of aliases.
        self.node_count += size
        self.repeated_count += size
        if self.repeated_count > MAX_REPEATED:
            raise RefusedYamlError(index, f"aliases repeat more than {MAX_REPEATED} values")
        return node

    def add(self, node: Node, event: Any, *, fresh: bool = True) -> None:
        if fresh and event.anchor is not None:
            self.anchors[event.anchor] = (node, 1)
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        if isinstance(parent[0], Items):
            parent[0].items.append(node)
        elif parent[3] is None:
            if not isinstance(node, Scalar):
                if self.source.startswith("{{", node.index - 1):  # a placeholder of a template
                    raise NotYamlError(node.index, MARKER)
                raise RefusedYamlError(node.index, KEY_NOT_TEXT)
            parent[3] = node
        else:
            parent[0].pairs.append((parent[3], node))
            parent[3] = None
