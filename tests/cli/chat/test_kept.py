"""The file of conversations, and what of an unfinished answer goes into it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.kept_conversation import LOST, ChatTurn, KeptConversation
from kantan_agents.cli.chat.progress import INTERRUPTED, AnswerProgress, portable
from kantan_agents.core.events import TextDelta, ToolCallDenied, ToolCallFinished, ToolCallStarted
from kantan_agents.errors import ConversationNotFoundError, ConversationsFileError


@pytest.fixture
def store(file: Path) -> Iterator[Conversations]:
    made = Conversations(file)
    yield made
    made.close()


def turn(number: int, question: str, **values: Any) -> ChatTurn:
    items = ({"role": "user", "content": question}, {"role": "assistant", "content": "Yes."})
    return ChatTurn(
        number, "turn", question, **{"answer": "Yes.", "items": items, "outcome": "finished", **values}
    )


def test_a_conversation_is_read_as_it_was_kept(store: Conversations) -> None:
    kept = store.add(Conversations.begin("shop"), turn(1, "One? \ud800 \x00", outcome="open"))
    kept = store.change(kept, turn(1, "One? \ud800 \x00", trace_id="trace_1"))
    kept = store.add(kept, turn(2, "Two?"))
    loaded = store.load(kept.id[:4])
    assert loaded.id == kept.id
    assert loaded.items() == kept.items()
    assert [one.question for one in loaded.turns] == ["One? \ufffd \x00", "Two?"]
    assert [one.trace_id for one in loaded.turns] == ["trace_1", None]
    assert store.load("last") == loaded


def test_an_answer_that_a_crash_has_ended_is_marked_and_a_summary_stands_for_what_is_before() -> None:
    summary = ChatTurn(2, "summary", "/compact", "S", ({"role": "user", "content": "S"},), "finished")
    items = ({"role": "user", "content": "3"},)
    kept = KeptConversation("id", "shop", (turn(1, "1"), summary, turn(3, "3", items=items, outcome="open")))
    assert [item["content"] for item in kept.items()] == ["S", "3", LOST]


def test_a_conversation_that_another_chat_has_gone_on_with_is_copied(store: Conversations) -> None:
    shared = store.add(Conversations.begin("shop"), turn(1, "shared"))
    theirs = store.add(shared, turn(2, "theirs"))
    mine = store.add(shared, turn(2, "mine"))
    assert mine.id != theirs.id == shared.id
    assert [one.question for one in store.load(theirs.id).turns] == ["shared", "theirs"]
    assert [one.question for one in store.load(mine.id).turns] == ["shared", "mine"]


def test_many_writers_lose_nothing(file: Path, store: Conversations) -> None:
    shared = store.add(Conversations.begin("shop"), turn(1, "shared"))
    results: list[KeptConversation] = []

    def write(name: str) -> None:
        other = Conversations(file)
        kept = shared
        for number in range(2, 7):
            kept = other.add(kept, turn(number, f"{name} {number}"))
        results.append(kept)
        other.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({kept.id for kept in results}) == 3
    for kept in results:
        assert [one.question for one in store.load(kept.id).turns] == [one.question for one in kept.turns]


def test_search_finds_texts_in_any_case_the_newest_first(store: Conversations) -> None:
    for question in ("Straße nach ROM", "other", "strasse nach Paris 100%"):
        store.add(Conversations.begin("shop"), turn(1, question))
    assert [one.title for one in store.search("STRASSE", 9)] == ["strasse nach Paris 100%", "Straße nach ROM"]
    assert [one.found for one in store.search("100%", 9)] == ["strasse nach Paris 100%"]
    assert len(store.search("yes.", 2)) == 2
    assert store.search("_", 9) == []


def test_a_removed_turn_leaves_no_empty_conversation(store: Conversations) -> None:
    kept = store.add(Conversations.begin("shop"), turn(1, "/mistyped"))
    kept = store.remove(kept, kept.turns[-1])
    assert kept.turns == ()
    assert store.newest(9) == []


@pytest.mark.parametrize("beginning", ["", "zz", "%", "_"])
def test_a_conversation_that_is_not_there_is_an_error(store: Conversations, beginning: str) -> None:
    store.add(Conversations.begin("shop"), turn(1, "x"))
    with pytest.raises(ConversationNotFoundError, match="E194"):
        store.load(beginning)


def test_an_ambiguous_id_is_an_error(store: Conversations) -> None:
    for name in ("ab1", "ab2"):
        store.add(KeptConversation(name, "shop"), turn(1, "x"))
    with pytest.raises(ConversationNotFoundError, match="several begin with it"):
        store.load("ab")


def test_other_files_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    other, text, folder = tmp_path / "other.sqlite3", tmp_path / "text", tmp_path / "folder"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    text.write_text("not a database, but long enough to be taken for one " * 20)
    folder.mkdir()
    before = other.read_bytes()
    for path, reason in ((other, "something else"), (text, "not a database"), (folder, "unable to open")):
        with pytest.raises(ConversationsFileError, match=reason):
            Conversations(path)
    assert other.read_bytes() == before
    with pytest.raises(ConversationsFileError, match="E195"):
        Conversations(text / "below" / "file")


def test_a_file_of_a_newer_version_is_refused(file: Path, store: Conversations) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConversationsFileError, match="newer version"):
        Conversations(file)


def test_a_damaged_turn_is_an_error(file: Path, store: Conversations) -> None:
    kept = store.add(Conversations.begin("shop"), turn(1, "x"))
    connection = sqlite3.connect(file)
    connection.execute("UPDATE turns SET items = '[{'")
    connection.commit()
    connection.close()
    with pytest.raises(ConversationsFileError, match="turn 1 is damaged"):
        store.load(kept.id)


BASE: dict[str, Any] = {
    "run_id": "r",
    "parent_run_id": None,
    "agent": "a",
    "sequence": 1,
    "time": datetime.now(timezone.utc),
}


def started(number: int, arguments: str) -> ToolCallStarted:
    return ToolCallStarted(call_id=f"c{number}", tool="t", arguments=arguments, **BASE)


steps = st.one_of(
    st.builds(lambda text: TextDelta(call_id="m", text=text, **BASE), st.text(min_size=1)),
    st.builds(started, st.integers(0, 3), st.one_of(st.just('{"a": 1}'), st.text(), st.just("[]"))),
    st.builds(
        lambda number: ToolCallFinished(
            call_id=f"c{number}", tool="t", seconds=0.0, outcome="finished", output="done", **BASE
        ),
        st.integers(0, 3),
    ),
    st.builds(
        lambda number: ToolCallDenied(
            call_id=f"c{number}", tool="t", seconds=0.0, code="E8", message="no", **BASE
        ),
        st.integers(0, 3),
    ),
)


@given(st.lists(steps, max_size=12, unique_by=lambda event: (event.type, getattr(event, "call_id", ""))))
def test_calls_and_results_of_an_unfinished_answer_are_pairs(events: list[Any]) -> None:
    progress = AnswerProgress()
    for event in events:
        progress.see(event)
    items = progress.items(INTERRUPTED)
    for index, item in enumerate(items):
        if item.get("type") == "function_call":
            assert items[index + 1]["call_id"] == item["call_id"]
            assert items[index + 1]["type"] == "function_call_output"
            assert isinstance(json.loads(item["arguments"]), dict)
    assert items[-1] == {"type": "message", "role": "assistant", "content": INTERRUPTED}
    assert progress.text == "\n".join(item["content"] for item in items[:-1] if "content" in item)


def test_portable_items_have_neither_ids_nor_reasoning() -> None:
    parts = [{"type": "output_text", "text": "Yes, "}, {"type": "refusal", "refusal": "no."}]
    items: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ]
    assert portable(items) == [
        items[0],
        {"type": "message", "role": "assistant", "content": "Yes, no."},
        {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
        items[4],
    ]


def test_a_turn_is_a_value() -> None:
    assert attrs.evolve(turn(1, "x"), answer="Yes.") == turn(1, "x")
