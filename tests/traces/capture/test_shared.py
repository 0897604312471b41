"""What records have in common is set apart, by the object and not by its content."""

from __future__ import annotations

import json

import msgspec

from kantan_agents.traces.capture.shared import Shared, pack

RUN = {"started_at": "2026-11-01T00:00:00+00:00", "model_calls": [], "tool_calls": []}


def test_a_content_has_one_place_however_often_it_occurs() -> None:
    tools, text = Shared("tools", b'[{"name":"a"}]'), Shared("instructions", 'Say "é".')
    packed = pack(
        {**RUN, "calls": [{"tools": tools, "text": text}, {"tools": tools}], "raw": msgspec.Raw(b"[1]")}
    )
    assert json.loads(packed.own) == {**RUN, "calls": [{"tools": 0, "text": 1}, {"tools": 0}], "raw": [1]}
    assert packed.shared == (tools, text)
    assert [json.loads(content.packed) for content in packed.shared] == [[{"name": "a"}], 'Say "é".']


def test_half_a_surrogate_pair_keeps_all_places() -> None:
    first, second = Shared("a", "one"), Shared("b", "two \ud83d")
    packed = pack({**RUN, "first": first, "odd": "\ud83d", "second": second, "again": first})
    assert json.loads(packed.own) == {**RUN, "first": 0, "odd": "\ud83d", "second": 1, "again": 0}
    assert json.loads(packed.shared[1].packed) == "two \ud83d"
