"""What records have in common is set apart, by the object and not by its content."""

from __future__ import annotations

import json

import msgspec
import pytest

from kantan_agents import Agent
from kantan_agents.bridge.captured import run as captured_run
from kantan_agents.capture.shared import PackedRun, Shared, pack
from kantan_agents.testing import ScriptedModel
from tests.capture.recording import Recording


def test_a_content_has_one_place_however_often_it_occurs() -> None:
    tools, text = Shared("tools", b'[{"name":"a"}]'), Shared("instructions", 'Say "é".')
    packed = pack({"calls": [{"tools": tools, "text": text}, {"tools": tools}], "raw": msgspec.Raw(b"[1]")})
    assert json.loads(packed.own) == {"calls": [{"tools": 0, "text": 1}, {"tools": 0}], "raw": [1]}
    assert packed.shared == (tools, text)
    assert [json.loads(content.packed) for content in packed.shared] == [[{"name": "a"}], 'Say "é".']


def test_half_a_surrogate_pair_keeps_all_places() -> None:
    first, second = Shared("a", "one"), Shared("b", "two \ud83d")
    packed = pack({"first": first, "odd": "\ud83d", "second": second, "again": first})
    assert json.loads(packed.own) == {"first": 0, "odd": "\ud83d", "second": 1, "again": 0}
    assert json.loads(packed.shared[1].packed) == "two \ud83d"


def test_what_a_recorder_has_stored_takes_no_space_in_its_queue() -> None:
    content = Shared("prompt", b"x" * 10_000)
    packed = PackedRun(b"{}", (content,))
    before = packed.size
    content.stored = "something"
    assert before - packed.size > 10_000


@pytest.mark.anyio
async def test_a_record_that_cannot_be_packed_says_so_and_the_run_goes_on(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(data: dict[str, object]) -> PackedRun:
        if data["model_calls"]:
            raise MemoryError
        return pack(data)

    monkeypatch.setattr(captured_run, "pack", failing)
    context = await Agent("a", "x", model=ScriptedModel(["fine"])).run_async("Go")
    assert context["result"].final_output == "fine"
    (trace,) = recording.traces()
    assert trace.runs[0].model_calls == ()
    assert trace.missing == (f"run {trace.runs[0].id}: the calls could not be captured: MemoryError",)
