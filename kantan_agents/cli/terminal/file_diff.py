"""A file's change as lines for a terminal."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kantan_agents.support.invisible import by_code

SHOWN_LINES: Final = 200

_CONTEXT: Final = 3
_MOST_COMPARED: Final = 1_500


def diff_lines(before: str | None, after: str) -> Iterator[str]:
    """Yield changed lines; ``before`` is None for a new file."""
    if before is None:
        yield from (f"+{visible(line)}" for line in after.removesuffix("\n").split("\n"))
        return
    old, new = before.split("\n"), after.split("\n")
    # Skip the equal lines at both ends: most of a file needs no comparison.
    start = max(0, _shared(old, new) - _CONTEXT)
    end = max(0, _shared(old[start:][::-1], new[start:][::-1]) - _CONTEXT)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) + len(new) > _MOST_COMPARED:
        groups: Iterable[Sequence[tuple[str, int, int, int, int]]]
        groups = [[("replace", 0, len(old), 0, len(new))]]
    else:
        groups = difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT)
    for group in groups:
        yield f"@@ from line {start + group[0][1] + 1} @@"
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                yield from (f" {visible(line)}" for line in old[old_from:old_to])
                continue
            yield from (f"-{visible(line)}" for line in old[old_from:old_to])
            yield from (f"+{visible(line)}" for line in new[new_from:new_to])


def visible(text: str) -> str:
    """Return a line with invisible characters as codes."""
    return by_code(text, strict=True)


def _shared(one: list[str], other: list[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
