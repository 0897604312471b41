"""The texts of prompts, and how they change from version to version."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from difflib import unified_diff
from pathlib import Path

import anyio
import pytest
from agents import set_trace_processors
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, Prompt, SQLiteRecorder, TraceStore
from kantan_agents.errors import PromptNotRecordedError
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.capture.diff_text import text_diff

Use = Callable[..., TraceStore]


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Use]:
    """``use(prompt, ...)``: run an agent with each prompt, and return the store."""

    def run(*prompts: Prompt | str, **options: bool) -> TraceStore:
        recorder = SQLiteRecorder(tmp_path / "traces.sqlite3", flush_on_sigterm=False, **options)
        set_trace_processors([recorder])
        try:
            for prompt in prompts:
                model = ScriptedModel([[assistant_message("Fine.")]])
                Agent("plain", prompt, model=model).run("How?", {"name": "Aiko"})
        finally:
            set_trace_processors([])
            recorder.shutdown()
        return TraceStore(tmp_path / "traces.sqlite3")

    yield run
    set_trace_processors([])


V1 = Prompt("support", "v1", "Help.\nBe kind to {{ $ctx.name }}.\n", meta={"owner": "me"})
V2 = Prompt("support", "v2", "Help.\nBe brief.\n")


def test_a_prompt_is_found_by_its_id_with_its_template(use: Use) -> None:
    store = use(V1)
    prompt = store.prompt(V1.resolve_id())
    assert (prompt.name, prompt.version, prompt.text) == ("support", "v1", V1.text)
    assert prompt.meta == {"owner": "me"}
    assert anyio.run(store.prompt_async, V1.resolve_id()) == prompt


def test_each_version_has_its_text(use: Use) -> None:
    first, second = use(V1, V2, V1).prompts("support")
    assert (first.texts, first.text, first.prompt_id) == (1, V1.text, V1.resolve_id())
    assert (second.texts, second.text, second.prompt_id) == (1, V2.text, V2.resolve_id())


def test_a_version_without_records_has_no_text(use: Use) -> None:
    (stats,) = use(V1, record_requests=False).prompts()
    assert (stats.runs, stats.texts, stats.text, stats.prompt_id) == (1, 0, None, None)


def test_a_text_that_was_edited_without_a_new_version_is_not_hidden(use: Use) -> None:
    texts = ["one", "two", "three"]
    store = use(*(Prompt("support", "v1", text) for text in texts))
    (stats,) = store.prompts()
    assert (stats.runs, stats.texts, stats.text) == (3, 3, "three")
    assert [prompt.text for prompt in stats.prompts] == texts
    diff = store.prompt_diff("support", "v1", "v1").split("\n")
    assert [line for line in diff if line[0] in "+-" and line[1] not in "+-"] == [
        "-one",
        "+two",
        "-two",
        "+three",
    ]


def test_of_very_many_texts_the_newest_are_read_and_all_are_counted(use: Use) -> None:
    (stats,) = use(*(f"Help user {number}." for number in range(13))).prompts()
    assert (stats.prompt_name, stats.prompt_version, stats.texts) == ("plain", None, 13)
    assert [prompt.text for prompt in stats.prompts] == [f"Help user {number}." for number in range(3, 13)]


def test_two_versions_differ_as_a_unified_diff_says(use: Use) -> None:
    store = use(V1, V2)
    assert store.prompt_diff("support", "v1", "v2") == (
        f"--- support v1 ({V1.resolve_id()[:8]})\n"
        f"+++ support v2 ({V2.resolve_id()[:8]})\n"
        "@@ -1,3 +1,3 @@\n"
        " Help.\n"
        "-Be kind to {{ $ctx.name }}.\n"
        "+Be brief.\n"
        " "
    )
    assert anyio.run(store.prompt_diff_async, "support", "v1", "v2") == store.prompt_diff(
        "support", "v1", "v2"
    )
    assert store.prompt_diff("support", "v1", "v1") == ""


def test_plain_instructions_have_no_version(use: Use) -> None:
    assert "+Be brief." in use("Be kind.", "Be brief.").prompt_diff("plain", None, None)


@pytest.mark.parametrize("versions", [("v1", "v3"), ("v3", "v1"), ("v3", "v3"), ("v1", None)])
def test_a_version_that_is_not_recorded_is_an_error(use: Use, versions: tuple[str, str]) -> None:
    store = use(V1)
    with pytest.raises(PromptNotRecordedError) as caught:
        store.prompt_diff("support", *versions)
    assert caught.value.code == "E87"
    assert caught.value.path == str(store.path)


def test_an_unknown_id_is_an_error(use: Use) -> None:
    store = use(V1, record_requests=False)
    with pytest.raises(PromptNotRecordedError, match="E87"):
        store.prompt(V1.resolve_id())


def test_a_damaged_text_hides_no_other(use: Use) -> None:
    store = use(V1, V2)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(
            "UPDATE kantan_agents_contents SET body = 'x' WHERE json_extract(body, '$.version') = 'v1'"
        )
    assert [stats.text for stats in store.prompts("support")] == [None, V2.text]
    assert store.prompt(V2.resolve_id()).text == V2.text


@given(st.text("ab\n"), st.text("ab\n"))
def test_the_diff_of_two_texts_is_that_of_their_lines(old: str, new: str) -> None:
    found = text_diff(old, new, "old", "new")
    assert (found == "") == (old == new)
    assert found.split("\n") == (
        list(unified_diff(old.split("\n"), new.split("\n"), "old", "new", lineterm="")) or [""]
    )
