"""Writes ``EXAMPLE_MODEL`` into every page and docstring that names an OpenAI model.

Readers copy the examples, so these must contain the name itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

EXAMPLE_MODEL = "gpt-6.1-terra"
"""Providers shut models down: change the name here, then run ``python docs/name_example_model.py``."""

ROOT = Path(__file__).resolve().parents[1]

_OPENAI_MODEL = re.compile(r"\bgpt-\d(?:[\w.-]*\w)?")


def texts() -> Iterator[Path]:
    """Yield the files that contain examples."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted((ROOT / "kantan_agents").rglob("*.py"))


def renamed(text: str) -> str:
    """Return a text in which the example model replaces every OpenAI model."""
    return _OPENAI_MODEL.sub(EXAMPLE_MODEL, text)


def main() -> None:
    """Rewrite the files that name another model."""
    for path in texts():
        text = path.read_text(encoding="utf-8")
        if renamed(text) != text:
            path.write_text(renamed(text), encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
