"""Secrets are masked in every column of every table, and nothing else is changed."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import agents.tracing
import pytest
from agents import function_span
from agents.tracing import (
    AgentSpanData,
    CustomSpanData,
    FunctionSpanData,
    GenerationSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    MCPListToolsSpanData,
    ResponseSpanData,
)
from hypothesis import example, given
from hypothesis import strategies as st
from kantan_llm.tracing import sanitize
from kantan_llm.tracing.sanitize import sanitize_text

from kantan_agents import SQLiteRecorder
from kantan_agents.support.secrets import may_contain_secret
from kantan_agents.traces.recorder.masking import mask_data, mask_text
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.test_rows import CALL, message, response

# Each with the part that must not be found.
SECRETS = {
    "sk-proj-0123456789abcdef": "0123456789abcdef",
    "sk-_-_-_-_-_-_-_0": "_-_-_-_-_-_-_0",
    "Bearer abc.def-ghi_jkl": "abc.def-ghi_jkl",
    "Bearer   0123456789": "0123456789",
    "api_key=0f1e2d3c4b": "0f1e2d3c4b",
    "API_KEY : 0f1e2d3c4b": "0f1e2d3c4b",
    "Api_Key:  0f1e2d3c4b": "0f1e2d3c4b",
    "ap\u0131_key=0f1e2d3c4b": "0f1e2d3c4b",
    "AP\u0130_\u212aEY=0f1e2d3c4b": "0f1e2d3c4b",
}
AROUND = [
    "{}",
    "the key is {}.",
    "鍵\uff1a{}\u3002",
    "({})",
    '"{}"',
    "one\n{}\ntwo",
    "one\t{}",
    "a=1&{}&b=2",
    "\\n{}",
    "C:\\new\\{}",
    "x" * 3_000 + " {} " + "y" * 3_000,
]


def as_arguments(text: str) -> str:
    """Return the arguments of a tool as a model writes them: JSON inside a text."""
    return json.dumps({"note": text, "text": f"first line\n{text}\n\t{text}\r\f\b{text}"})


def texts_with(secret: str) -> list[str]:
    texts = [around.format(secret) for around in AROUND]
    if not secret.isascii():
        return texts  # JSON would escape it
    arguments = [as_arguments(text) for text in (secret, f"the key is {secret}.", f"one\n{secret}")]
    return [*texts, *arguments, *(json.dumps({"inner": text}) for text in arguments)]


def record_everywhere(text: str) -> None:
    """Record spans with ``text`` in every place that can hold a text."""
    called = {**CALL, "arguments": text}
    create = agents.tracing.get_trace_provider().create_span
    deep = {"list": [{"text": text}], text: 1, "keys": {text: {text: text}}}
    with agents.tracing.trace(
        f"workflow {text}", group_id=f"group {text}", metadata={"note": text, text: "v", "deep": deep}
    ):
        for data in (
            AgentSpanData(f"agent {text}", [text], [text], text),
            FunctionSpanData(f"tool {text}", text, text, {"server": text}),
            FunctionSpanData("tool", text, {"result": text}),
            GenerationSpanData(
                [{"role": "user", "content": text}], [deep], text, {"base_url": text}, {text: 1}
            ),
            GenerationSpanData([], [{"tool_calls": [{"function": {"name": "f", "arguments": text}}]}]),
            ResponseSpanData(response(message(text)), text),
            ResponseSpanData(response(message(text), called), [{"role": "user", "content": text}, called]),
            CustomSpanData(f"custom {text}", {"data": deep}),
            CustomSpanData("judge", {"rubric": {"score": 0.5, "comments": [text], text: 1}}),
            HandoffSpanData(text, text),
            GuardrailSpanData(f"guardrail {text}", triggered=True),
            MCPListToolsSpanData(f"server {text}", [text]),
        ):
            with create(data) as span:
                span.set_error({"message": f"failed: {text}", "data": {"why": deep, text: text}})


def everything_in(file: DatabaseFile) -> str:
    """Return the content of all columns, including the values decoded from JSON, and JSON inside them."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
            if value[:1] in ('"', "{", "["):
                try:
                    look(json.loads(value))
                except ValueError:
                    return
        elif isinstance(value, dict):
            look([*value.keys(), *value.values()])
        elif isinstance(value, (list, tuple)):
            for inner in value:
                look(inner)

    tables = [name for (name,) in file.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        look([list(row) for row in file.rows(f"SELECT * FROM {table}")])
    return "\n".join(found)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_column_of_any_table_contains_a_secret(
    recorder: SQLiteRecorder, file: DatabaseFile, secret: str
) -> None:
    for text in texts_with(secret):
        record_everywhere(text)
    assert recorder.force_flush(60)
    everything = everything_in(file)
    assert recorder.stats().failed == 0
    assert "the key is " in everything
    assert "***" in everything
    assert [line for line in everything.splitlines() if SECRETS[secret] in line] == []
    assert SECRETS[secret].encode() not in file.bytes()


def test_ids_and_the_text_around_a_secret_are_not_changed(
    recorder: SQLiteRecorder, file: DatabaseFile
) -> None:
    metadata = {"agent_run_id": "r", "deep": [{"k": "Bearer 0123456789"}]}
    texts = '{"key": "sk-0123456789abc", "n": 1}', "done: api_key=0123456789 (two)"
    with agents.tracing.trace("w", metadata=metadata) as opened, function_span("add", *texts) as span:
        span.set_error({"message": "no\nsk-0123456789abc there", "data": {"code": 7}})
    assert recorder.force_flush()
    (found,) = file.traces(metadata={"agent_run_id": "r"})
    assert found.metadata == {"agent_run_id": "r", "deep": [{"k": "Bearer ***"}]}
    (row,) = file.spans(trace_id=opened.trace_id)
    assert row.span_id == span.span_id
    assert row.input == '{"key": "sk-***", "n": 1}'
    assert row.output == "done: api_key=*** (two)"
    assert row.error == {"message": "no\nsk-*** there", "data": {"code": 7}}
    assert row.raw["span_data"]["input"] == row.input


@pytest.mark.parametrize("text", ["ask-0123456789abc", "sk-short", "Bearer short", "api_key=x"])
def test_parts_of_words_and_short_words_are_not_masked(
    recorder: SQLiteRecorder, file: DatabaseFile, text: str
) -> None:
    assert sanitize_text(text) == text
    record_everywhere(text)
    assert recorder.force_flush()
    assert "***" not in everything_in(file)


# Alphabets that make matches likely, with all letters that case-insensitive patterns match.
keys_of = [
    "api_key",
    "API_KEY",
    "ap",
    "i",
    "I",
    "\u0130",
    "\u0131",
    "_",
    "k",
    "K",
    "\u212a",
    "ey",
    "EY",
    "\u017f",
]
spaces = [" ", "\t", "\n", "\u00a0", "\u3000", "\\", "\\n", "n", "=", ":", ".", "-", '"', "\u00e9", "\u4f60"]
pieces = ["sk-", "SK-", "s", "k", "Bearer", "bearer", "0123456789", "abcdef", *spaces, *keys_of]
likely = st.lists(st.sampled_from(pieces), max_size=10).map("".join)


@given(st.one_of(likely, st.text()))
@example("ap\u0131_key=012345")
@example("\u0041\u0050\u0130_\u212aEY:012345")
def test_no_text_that_kantan_llm_would_change_is_considered_harmless(text: str) -> None:
    if not may_contain_secret(text):
        assert sanitize_text(text) == text
        assert mask_text(text) == text
    if not may_contain_secret(json.dumps({text: [text]}, ensure_ascii=False)):
        assert mask_data({text: [text]}) == {text: [text]}


@given(likely, likely)
def test_no_record_with_a_text_that_kantan_llm_would_change_is_considered_harmless(
    key: str, value: str
) -> None:
    record = {key: [value, {"k": value}]}
    if not may_contain_secret(json.dumps(record, ensure_ascii=False)):
        assert sanitize_text(key) == key
        assert sanitize_text(value) == value


@given(likely)
def test_masking_is_idempotent_and_masks_everything_that_kantan_llm_masks(text: str) -> None:
    masked = mask_text(text)
    assert mask_text(masked) == masked
    assert sanitize_text(masked) == masked


before = st.sampled_from(
    ["\n", "\t", "\r", "\f", "\b", "\n\n", " ", '"', "\\", "/", "\x00", "\u3000", "\uff1a", "\u201c"]
)


@given(before, st.sampled_from(["sk-0123456789", "Bearer 0123456789", "api_key=0123456789"]), st.booleans())
def test_a_secret_is_found_directly_after_an_escape_sequence(
    before: str, secret: str, ascii_only: bool
) -> None:
    """Arguments and results of tools are often JSON inside a text, sometimes inside JSON again."""
    written = json.dumps({"k": before + secret}, ensure_ascii=ascii_only)
    for _ in range(3):
        assert "0123456789" not in mask_text(written)
        written = json.dumps(written, ensure_ascii=ascii_only)


def test_kantan_llm_has_exactly_the_three_known_patterns() -> None:
    """Detects new patterns in a new version of kantan-llm; ``may_contain_secret`` must know them."""
    patterns = {
        name: (value.pattern, value.flags)
        for name, value in vars(sanitize).items()
        if isinstance(value, re.Pattern)
    }
    assert patterns == {
        "_RE_SK": (r"\bsk-[A-Za-z0-9_-]{10,}\b", re.UNICODE),
        "_RE_BEARER": (r"\bBearer\s+[A-Za-z0-9._-]{10,}\b", re.UNICODE),
        "_RE_API_KEY": (r"\bapi_key\s*[:=]\s*([A-Za-z0-9._-]{6,})\b", re.UNICODE | re.IGNORECASE),
    }
    source = inspect.getsource(sanitize_text)
    assert source.count(".sub(") == 3
    assert "replace(" not in source


def test_all_letters_that_a_case_insensitive_pattern_matches_are_known() -> None:
    letters = re.compile("[api_key]", re.IGNORECASE)
    odd = [chr(code) for code in range(128, 0x110000) if letters.match(chr(code))]
    for letter in odd:
        key = "api_key".replace("i", letter) if letter in "\u0130\u0131" else f"api_{letter}ey"
        assert may_contain_secret(f"{key}=0123456789") == (
            sanitize_text(f"{key}=0123456789") == "api_key=***"
        )
    assert "\u212a" in odd
