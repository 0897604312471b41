"""A search compares text as it is: no character of a word, a name or an id is a wildcard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents import TraceStore
from kantan_agents.errors import TraceNotFoundError
from tests.traces.store.sample_database import SampleDatabase, open_sample


def found_by(store: TraceStore, word: str) -> set[str]:
    return {trace.trace_id for trace in store.traces(keywords=[word], limit=None)}


@pytest.mark.parametrize(
    "word", ["100%", "a_b", "%", "_", "\\", "50*", "[x]", "a?b", "'quoted'", "back\\slash%"]
)
def test_a_keyword_finds_only_the_text_itself(db: SampleDatabase, store: TraceStore, word: str) -> None:
    exact = db.run(f"before {word} after")
    db.run("before 100 after aXb backslash x quoted 50 a")
    assert found_by(store, word) == {exact}


def test_the_case_of_a_sigma_at_the_end_of_a_word_does_not_matter(
    db: SampleDatabase, store: TraceStore
) -> None:
    trace_id = db.run("ΟΔΟΣΑ", "Straße")
    for word in ("ΔΟΣ", "δος", "δοσ", "STRAẞE"):
        assert found_by(store, word) == {trace_id}, word


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Read カ\u3099イト\u3099ライン.pdf",
            ["ガイドライン", "カ\u3099イト\u3099", "ガ", "ガイドライン.PDF"],
        ),
        ("order １２３４５", ["12345", "１２３４５", "12", "RDER 1"]),  # noqa: RUF001 - full-width
        ("order 12345", ["１２３４５", "１２"]),  # noqa: RUF001
        ("ｶﾞｲﾄﾞ", ["ガイド", "ガイ"]),
        ("Re\u0301sume\u0301", ["résumé", "RÉSUMÉ", "re\u0301s"]),
        ("Ａｂｃ ﬁle", ["abc", "ＡＢＣ", "file", "FILE"]),  # noqa: RUF001
    ],
)
def test_the_way_a_character_is_written_does_not_matter(
    db: SampleDatabase, store: TraceStore, text: str, words: Sequence[str]
) -> None:
    for place, fields in enumerate([{"input": text}, {"output": text}]):
        trace_id = db.run(fields.get("input", ""), fields.get("output", ""))
        db.run("other 345 ガラ", "ab de")
        for word in words:
            assert trace_id in found_by(store, word), word
        assert len(found_by(store, words[0])) == place + 1


def test_a_keyword_may_be_longer_than_a_pattern_of_sqlite(db: SampleDatabase, store: TraceStore) -> None:
    word = "long " * 12_000
    trace_id = db.run(f"{word}end")
    db.run("long")
    assert found_by(store, word) == {trace_id}


@pytest.mark.parametrize("value", ["%", "_", "s%t", "*"])
def test_agent_prompt_version_tool_and_metadata_are_compared_as_they_are(
    db: SampleDatabase, store: TraceStore, value: str
) -> None:
    names = {"agent_name": "sut", "prompt_name": "sut", "prompt_version": "sut", "tenant": "sut"}
    other = db.run(**names)
    db.tool(other, "sut")
    exact = db.run(**dict.fromkeys(names, value))
    db.tool(exact, value)
    for filters in (
        {"agent": value},
        {"prompt": value},
        {"version": value},
        {"tool": value},
        {"metadata": {"tenant": value}},
    ):
        assert [trace.trace_id for trace in store.traces(**filters)] == [exact], filters


@pytest.mark.parametrize("beginning", ["%", "_", "trace_%", "*", "trace?", "\U0010ffff", "\x00"])
def test_the_beginning_of_an_id_is_compared_as_it_is(
    db: SampleDatabase, store: TraceStore, beginning: str
) -> None:
    db.run()
    with pytest.raises(TraceNotFoundError):
        store.trace(beginning)


def test_a_tool_is_not_found_by_a_name_inside_the_arguments_of_another(
    db: SampleDatabase, store: TraceStore
) -> None:
    trace_id = db.trace()
    calls = [{"type": "function_call", "name": "add", "arguments": {"rows": [{"name": "shell"}]}}]
    db.span(trace_id, "response", output=calls)
    assert store.traces(tool="shell") == []
    assert [trace.trace_id for trace in store.traces(tool="add")] == [trace_id]


# Text with everything that a pattern language could give a meaning.
TEXTS = st.text(st.sampled_from("abAB%_\\*?[]'\"^$ ÜüßẞδΔİi\x00"), max_size=8)


def contains(text: str, word: str) -> bool:
    """Return what the documentation promises: case and width are ignored, and how marks are written."""
    plain = lower_ascii(text)
    return lower_ascii(word) in plain or folded(word) in plain or folded(word) in folded(text)


def folded(text: str) -> str:
    return normalize("NFKC", normalize("NFKC", text).casefold())


def lower_ascii(text: str) -> str:
    return text.encode().lower().decode()


@given(texts=st.lists(st.tuples(TEXTS, TEXTS), max_size=6), words=st.lists(TEXTS, min_size=1, max_size=4))
@example(texts=[("100 of it", "x"), ("100%", "y")], words=["100%"])
@example(texts=[("ab", "x"), ("a_", "y")], words=["a_"])
@example(texts=[("ß", "x"), ("ss", "y")], words=["ẞ"])
def test_a_search_finds_exactly_the_traces_whose_text_contains_the_word(
    texts: Sequence[tuple[str, str]], words: Sequence[str]
) -> None:
    with TemporaryDirectory() as directory, open_sample(Path(directory) / "t.db") as database:
        ids = [database.run(*pair) for pair in texts]
        store = TraceStore(database.path)
        for word in words:
            expected = {
                trace_id
                for trace_id, pair in zip(ids, texts, strict=True)
                if any(contains(text, word) for text in pair)
            }
            assert found_by(store, word) == expected, word
