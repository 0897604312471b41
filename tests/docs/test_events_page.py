"""The tables of docs/events.md say what the classes say."""

from __future__ import annotations

import attrs

from kantan_agents.events import EVENT_KINDS, Event

from .pages import ROOT, Page, code_spans, rows

PAGE = Page(ROOT / "docs" / "events.md")


def names_of(kind: type[Event]) -> list[str]:
    return [field.name for field in attrs.fields(kind)]


def test_every_kind_is_listed_with_its_fields_in_their_order() -> None:
    told = PAGE.section("What is told")
    listed = {
        code_spans(kind)[0]: (code_spans(name)[0], code_spans(fields[-1]))
        for kind, name, *fields in rows(told)
        if fields
    }
    common = names_of(Event)
    assert listed == {
        kind.type: (kind.__name__, [name for name in names_of(kind) if name not in common])
        for kind in EVENT_KINDS
    }


def test_what_all_events_have_is_listed_in_its_order() -> None:
    told = PAGE.section("What is told")
    listed = [code_spans(row[0])[0] for row in rows(told) if len(row) == 2]
    assert listed == ["type", *names_of(Event)]
