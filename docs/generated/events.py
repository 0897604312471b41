"""The list of events: docs/reference/events.md, from the classes of ``kantan_agents.core.events``."""

from __future__ import annotations

import attrs

from kantan_agents.core.events import EVENT_KINDS, EventBase

from . import docstrings


def markdown() -> str:
    """Return the fields that all events have, then each type with its own fields."""
    common = [field.name for field in attrs.fields(EventBase)]
    blocks = [
        "### Fields of every event",
        _table(
            EventBase,
            common,
            "| `type` | `str` | The type, as in the headings below. |",
        ),
    ]
    for kind in EVENT_KINDS:
        names = [field.name for field in attrs.fields(kind) if field.name not in common]
        blocks += [f"### `{kind.type}`", f"Class `{kind.__name__}`."]
        blocks += docstrings.parts(kind).paragraphs
        if names:
            blocks.append(_table(kind, names))
    return "\n\n".join(blocks)


def _table(kind: type[EventBase], names: list[str], *first: str) -> str:
    described = docstrings.parts(kind).attributes
    types = attrs.fields_dict(kind)
    rows = ["| Field | Type | Meaning |", "| --- | --- | --- |", *first]
    for name in names:
        # A pipe in a code span does not end a cell.
        rows.append(f"| `{name}` | `{types[name].type}` | {described[name]} |")
    return "\n".join(rows)
