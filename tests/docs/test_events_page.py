"""The tables of docs/reference/events.md match the event classes."""

from __future__ import annotations

import attrs

from kantan_agents.core.events import EVENT_KINDS, EventBase

from .pages import ROOT, Page, code_spans, rows

PAGE = Page(ROOT / "docs" / "events.md")


def names_of(kind: type[EventBase]) -> list[str]:
    return [field.name for field in attrs.fields(kind)]


def test_every_event_type_is_listed_with_its_fields_in_their_order() -> None:
    section = PAGE.section("Event types")
    listed = {
        code_spans(kind)[0]: (code_spans(name)[0], code_spans(fields[-1]))
        for kind, name, *fields in rows(section)
        if fields
    }
    common = names_of(EventBase)
    assert listed == {
        kind.type: (kind.__name__, [name for name in names_of(kind) if name not in common])
        for kind in EVENT_KINDS
    }


def test_the_common_fields_are_listed_in_their_order() -> None:
    common, _, _ = PAGE.section("Event types").partition("Each type adds its own fields")
    assert [code_spans(row[0])[0] for row in rows(common)] == ["type", *names_of(EventBase)]
