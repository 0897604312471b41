"""The parts of ``CompactHistory`` on their own: turns, estimates, results, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents.middleware.compact_history.memory import Counted, Memory
from kantan_agents.middleware.compact_history.request import digests_of
from kantan_agents.middleware.compact_history.summarize import parts_of, transcript_of
from kantan_agents.middleware.compact_history.tokens import FILE, IMAGE, tokens_of_item, tokens_of_text
from kantan_agents.middleware.compact_history.tool_results import can_be_shortened, cut_item, is_stub, stub_of
from kantan_agents.middleware.compact_history.turns import turns_of
from tests.middleware.compact_history.conversations import assistant, exchanges, looked_up, user

REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
CALL, RESULT = looked_up(1, "found")
OTHER, OTHER_RESULT = looked_up(2, "found")
SEARCH = {"type": "tool_search_call", "call_id": None}
FOUND: dict[str, Any] = {"type": "tool_search_output", "call_id": None, "tools": []}
ASKED = {"type": "mcp_approval_request", "id": "m"}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True}
HOSTED = {"type": "web_search_call", "id": "w"}
RULE = {"role": "system", "content": "Be kind."}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([user("a"), user("b")], ["u", "u"]),
        ([user("a"), REASONING, CALL, RESULT, assistant("b")], ["u", "aaa", "a"]),
        ([REASONING, CALL, OTHER, OTHER_RESULT, RESULT, REASONING, assistant("b")], ["aaaaa", "aa"]),
        ([REASONING, SEARCH, FOUND, CALL, RESULT], ["aaaaa"]),
        ([REASONING, HOSTED, assistant("a"), user("b")], ["aaa", "u"]),
        ([REASONING, ASKED, APPROVED, assistant("a")], ["aaa", "a"]),
        ([CALL, user("a"), RESULT, assistant("b")], ["uuu", "a"]),
        ([CALL, assistant("a"), OTHER, RESULT, OTHER_RESULT, user("b")], ["aaaaa", "u"]),
        ([CALL, RESULT, CALL, RESULT], ["aa", "aa"]),
        ([user("a"), CALL], ["u", "f"]),
        ([RESULT, user("a")], ["f", "u"]),
        ([CALL, OTHER, RESULT], ["fff"]),
        ([RULE, user("a"), {"type": "compaction", "encrypted_content": "x"}], ["f", "u", "f"]),
        ([user("a"), REASONING, {"type": "item_reference", "id": "x"}], ["u", "ff"]),
        ([{"surprising": 1}, "text"], ["ff"]),
        ([], []),
    ],
    ids=str,
)
def test_turns_hold_what_belongs_together(items: list[Any], expected: list[str]) -> None:
    assert [turn.kind[0] * len(turn.places) for turn in turns_of(items)] == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 1),
        ("words", 2),
        ("2026-11-27", 5),
        ("日本語", 3),
        ("привет", 3),
        ("🙂", 2),
        ("é", 1),
    ],
)
def test_texts_are_estimated_by_their_characters(text: str, tokens: int) -> None:
    assert tokens_of_text(text) == tokens


def test_media_count_the_same_whatever_their_size() -> None:
    for size in (10, 100_000):
        image = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * size}
        file = {"type": "input_file", "file_data": "A" * size}
        assert IMAGE + FILE < tokens_of_item({"role": "user", "content": [image, file]}) < IMAGE + FILE + 10
    made = {"type": "image_generation_call", "id": "i", "result": "A" * 100_000}
    assert tokens_of_item(made) < IMAGE + 10


def test_a_stub_has_no_id_of_the_result_that_it_replaces_and_a_hosted_call_keeps_its_own() -> None:
    assert "id" not in stub_of({**RESULT, "id": "x"})
    assert "id" not in cut_item({**RESULT, "id": "x", "output": "long " * 100}, 0.5)
    assert stub_of({"type": "mcp_call", "id": "x", "output": "long"})["id"] == "x"


def test_a_stub_counts_the_characters_of_all_parts_and_is_recognised() -> None:
    parts = [{"type": "input_text", "text": "abc"}, {"type": "input_image", "image_url": "data:..."}]
    shell = [{"stdout": "abc", "stderr": "de", "outcome": {"type": "timeout"}}]
    stubs = [
        stub_of({**RESULT, "output": parts}),
        stub_of({"type": "shell_call_output", "call_id": "c", "output": shell}),
    ]
    assert "3 characters" in stubs[0]["output"]
    assert "5 characters" in stubs[1]["output"][0]["stdout"]
    assert stubs[1]["output"][0]["outcome"] == {"type": "timeout"}
    assert all(map(is_stub, stubs))
    assert not is_stub(cut_item({**RESULT, "output": "long " * 100}, 0.5))
    assert not is_stub(RESULT)


def test_screenshots_and_found_tools_cannot_be_shortened() -> None:
    screenshot = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}
    assert not any(
        map(can_be_shortened, [screenshot, FOUND, CALL, user("a"), "text", {**RESULT, "output": ""}])
    )


def test_ids_that_a_session_may_leave_out_do_not_make_another_conversation() -> None:
    stored = {"type": "message", "role": "assistant", "content": "a", "id": "m", "status": "completed"}
    plain = {"type": "message", "role": "assistant", "content": "a", "phase": None}
    assert [*digests_of([stored])] == [*digests_of([plain])]
    assert [*digests_of([REASONING])] != [*digests_of([{**REASONING, "id": "rs_2"}])]
    assert [*digests_of([user("a"), user("b")])] != [*digests_of([user("b"), user("a")])]
    assert len([*digests_of([{"role": "user", "content": {1, 2}}, user("\ud83d")])]) == 2


def test_a_conversation_that_grows_takes_the_place_of_one_count() -> None:
    memory = Memory(2)
    other, growing = [*digests_of([user("other")])], [*digests_of([user("a")] * 9)]
    memory.keep_count("m", other, Counted(10, 10))
    for length in range(1, 10):
        memory.keep_count("m", growing[:length], Counted(10 * length, 10 * length))
    assert memory.counted("m", other) == Counted(10, 10)
    assert memory.counted("m", growing) == Counted(90, 90)
    assert memory.counted("another", growing) is None


def test_a_transcript_has_what_was_said_and_done() -> None:
    items = [
        user("Look."),
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "reasoning", "id": "r2", "summary": [], "encrypted_content": "secret"},
        *looked_up(3, "It is there."),
        {"type": "mcp_call", "id": "m", "name": "t", "arguments": "{}", "output": "Known."},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:..."}]},
        {"type": "image_generation_call", "id": "i", "result": "AAAA"},
    ]
    assert transcript_of(items) == [
        "[user]\nLook.",
        "[reasoning]\nHm.",
        '[function call]\n{"name": "find", "arguments": "{\\"n\\": 3}"}',
        "[result]\nIt is there.",
        '[mcp call]\n{"name": "t", "arguments": "{}", "output": "Known."}',
        "[assistant]\nYes.",
        "[user]\n(input_image)",
        '[image generation call]\n{"result": "..."}',
    ]


def test_parts_are_bounded_in_size_and_number_and_the_newest_are_kept() -> None:
    entries = transcript_of(exchanges(40, "A line. " * 20))
    parts = parts_of(entries, 300, 100)
    assert "\n\n".join(parts) == "\n\n".join(entries)
    assert all(tokens_of_text(part) <= 300 for part in parts)
    assert parts_of(entries, 300, 3) == parts[-3:]
    [cut] = parts_of(["word " * 10_000], 300, 3)
    assert tokens_of_text(cut) <= 300
