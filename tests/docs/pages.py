"""The pages of the documentation as data: their Python examples, shown outputs, tables and scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_REPLIES = re.compile(r"<!-- replies: (?P<json>(?:(?!-->).)*) -->\n+\Z", re.DOTALL)
_OUTPUT = re.compile(r"<!-- output -->\n+\Z")
_NEEDS = re.compile(r"<!-- needs: (?P<names>[\w, -]+) -->\n+(?:<!-- (?:(?!-->).)* -->\n+)?\Z", re.DOTALL)
_SPAN = re.compile(r"(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)")
_PYTEST = "<!-- run: pytest -->"


@attrs.frozen
class Block:
    """A fenced block: its language, its code, the number of its first line, and the text of the page before
    it."""

    language: str
    code: str
    line: int
    before: str

    @property
    def replies(self) -> list[Any]:
        """The replies of the model server while this block runs, from ``<!-- replies: [...] -->``."""
        directive = _REPLIES.search(self.before)
        return json.loads(directive["json"]) if directive else []

    @property
    def needs(self) -> list[str]:
        """The packages beside the development environment that it needs, from ``<!-- needs: ... -->``."""
        directive = _NEEDS.search(self.before)
        return re.split(r", *", directive["names"]) if directive else []

    @property
    def is_output(self) -> bool:
        """Whether it shows what the page prints: a ``text`` block after ``<!-- output -->``."""
        return self.language == "text" and _OUTPUT.search(self.before) is not None


@attrs.frozen
class Example:
    """A Python block that needs packages which the development environment lacks: a script of its own."""

    page: str
    block: Block
    output: str

    def __str__(self) -> str:
        return f"{self.page}:{self.block.line}"


@attrs.frozen
class Page:
    """One Markdown file, whose Python blocks together are one script.

    Blocks that need other packages (``<!-- needs: NAME -->``) are not part of it. ``examples_beside`` has
    them, and tests/real_parts runs them.
    """

    path: Path

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Its path inside the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        """The text of the whole file."""
        return self.path.read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[Block]:
        """Return the blocks of one language, in order, without those that need other packages."""
        return [block for block in _blocks(self.text) if block.language == language and not block.needs]

    @property
    def examples_beside(self) -> list[Example]:
        """The Python blocks that need other packages, each with the output that the page shows for it."""
        found: list[Example] = []
        for block in _blocks(self.text):
            if block.needs and block.language == "python":
                found.append(Example(self.name, block, ""))
            elif block.needs and block.is_output:
                found[-1] = attrs.evolve(found[-1], output=block.code)
        return found

    @property
    def is_test_module(self) -> bool:
        """Whether the page's script is a test module, to be run by pytest."""
        return _PYTEST in self.text

    @property
    def script(self) -> str:
        """The Python blocks at their line numbers in the page, with blank lines between them."""
        lines = [""] * (self.text.count("\n") + 1)
        for block in self.blocks("python"):
            code = block.code.splitlines()
            lines[block.line - 1 : block.line - 1 + len(code)] = code
        return "\n".join(lines).rstrip() + "\n"

    @property
    def replies(self) -> list[Any]:
        """All replies of the page, in order."""
        return [reply for block in self.blocks("python") for reply in block.replies]

    @property
    def output(self) -> str:
        """All output that the page shows."""
        return "".join(block.code for block in self.blocks("text") if block.is_output)

    def section(self, heading: str) -> str:
        """Return the text under a second-level heading, including its sub-sections."""
        _, _, rest = self.text.partition(f"\n## {heading}\n")
        assert rest, f"{self} has no section {heading!r}"
        return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each table row that begins with a code span, as Markdown."""
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("| ").split(" | ")]


def code_spans(text: str) -> list[str]:
    """Return the contents of the code spans in a line."""
    return [match["code"].strip() for match in _SPAN.finditer(text)]


def _blocks(text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        yield Block(match["language"], match["code"], line, text[: match.start()])
