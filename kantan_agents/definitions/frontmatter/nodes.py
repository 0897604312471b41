"""YAML as far as agent files need it: scalars stay text, no tag makes an object, nothing grows without end.

Built from PyYAML's events (the C parser where there is one), not from its nodes: the events come one
after another, so no depth of nesting can exhaust the interpreter's stack.
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import yaml

DEPTH: Final = 50
MOST_NODES: Final = 100_000
MOST_REPEATED: Final = 10_000
"""How many nodes aliases may stand for in one file."""

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAGS: Final = frozenset({None, "!", *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))})
_NOT_PRINTABLE: Final = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@attrs.frozen
class Scalar:
    """A text of the file.

    Attributes:
        text: The text, unquoted and unescaped.
        index: Where it begins in the source.
        style: None for plain, else ``'``, ``"``, ``|`` or ``>``.
        as_it_is: Whether a literal ``\\n`` in it is meant: in block scalars, and where the source writes
            its backslashes as ``\\x5c``.
    """

    text: str
    index: int
    style: str | None = None
    as_it_is: bool = False


@attrs.frozen
class Items:
    """A list of the file."""

    items: list[Any]
    index: int


@attrs.frozen
class Fields:
    """A mapping of the file, as pairs in their order: a key may stand there twice."""

    pairs: list[tuple[Scalar, Any]]
    index: int


Node = Scalar | Items | Fields


class NotYamlError(Exception):
    """The text is not YAML: ``index`` says where, ``reason`` why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason


class RefusedYamlError(Exception):
    """The text is YAML, but nothing an agent file may hold: ``index`` says where, ``reason`` why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason


def parse(source: str) -> Node | None:
    """Return the one document in ``source``, None where it holds nothing.

    Raises:
        NotYamlError: It is not valid YAML, or more than one document.
        RefusedYamlError: It holds a tag, a key that is no text, or too much.
    """
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
        # What does not close is found missing behind the last line.
        index = min(mark.index, len(source.rstrip())) if mark else 0
        raise NotYamlError(index, error.problem or error.context or "is no YAML") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The last two come from the parser in Python, for an escape that names no character.
        raise NotYamlError(0, str(error)) from error
    finally:
        if loader is not None:
            loader.dispose()


class _Builder:
    """Puts one document together from events."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.made = 0
        self.repeated = 0
        # Collections under construction: node, anchor, nodes made before it, the key that waits for a value.
        self.open: list[list[Any]] = []
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
            return Scalar(value, start, style, as_it_is=True)
        escaped = (
            style == '"' and "\\" in value and "\\x5c" in self.source[start : event.end_mark.index].lower()
        )
        return Scalar(value, start, style, as_it_is=escaped)

    def check(self, event: Any) -> None:
        index = event.start_mark.index
        if event.tag not in _TAGS:
            raise RefusedYamlError(index, f"holds the YAML tag {event.tag[:80]!r}, which is not read")
        self.made += 1
        if self.made > MOST_NODES:
            raise RefusedYamlError(index, f"holds more than {MOST_NODES} values")

    def begin(self, node: Items | Fields, event: Any) -> None:
        self.check(event)
        if len(self.open) >= DEPTH:
            raise RefusedYamlError(node.index, f"is nested deeper than {DEPTH} levels")
        self.open.append([node, event.anchor, self.made, None])

    def end(self, event: Any) -> None:
        node, anchor, before, _ = self.open.pop()
        if anchor is not None:
            self.anchors[anchor] = (node, self.made - before + 1)
        self.add(node, event, fresh=False)

    def aliased(self, event: Any) -> Node:
        index = event.start_mark.index
        if any(anchor == event.anchor for _, anchor, _, _ in self.open):
            raise RefusedYamlError(index, f"the alias *{event.anchor} stands within what it repeats")
        if event.anchor not in self.anchors:
            raise NotYamlError(index, f"the alias *{event.anchor} repeats nothing")
        node, size = self.anchors[event.anchor]
        # What is repeated counts in full, so aliases of aliases are bounded as well.
        self.made += size
        self.repeated += size
        if self.repeated > MOST_REPEATED:
            raise RefusedYamlError(index, f"aliases repeat more than {MOST_REPEATED} values")
        return node

    def add(self, node: Node, event: Any, *, fresh: bool = True) -> None:
        if fresh and event.anchor is not None:
            self.anchors[event.anchor] = (node, 1)
        if not self.open:
            self.root = node
            return
        around = self.open[-1]
        if isinstance(around[0], Items):
            around[0].items.append(node)
        elif around[3] is None:
            if not isinstance(node, Scalar):
                raise RefusedYamlError(node.index, "a key is no text")
            around[3] = node
        else:
            around[0].pairs.append((around[3], node))
            around[3] = None
