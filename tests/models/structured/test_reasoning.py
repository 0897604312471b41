"""A draft in a model's reasoning is never taken for its answer, by no reader of a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import RUBRIC, Agent, StatusJudge, StructuredOutputError, find_tag, parse_structured_output
from kantan_agents.lab.improve.reflection import NewPrompt
from kantan_agents.models.structured.parsing.reasoning import REASONING_MARKS, REASONING_TAGS, reply_in
from kantan_agents.testing import OfflineServer, ScriptedModel
from tests.models.structured.invoices import DATA, TEXT, invoice_agent

DRAFT = '```json\n{"number": "B-9", "items": []}\n```'
MARKS = [
    ("<think>", "</think>"),  # DeepSeek, Qwen, GLM, EXAONE and most others
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ('<think signature="x">', "</think>"),
    ("<THINK>", "</THINK>"),
    ("<mm:think>", "</mm:think>"),
    ("<seed:think>", "</seed:think>"),
    ("<think:opensource>", "</think:opensource>"),  # Hunyuan
    ("<think_never_used_51bc>", "</think_never_used_51bc>"),  # Doubao Seed
    ("<antThinking>", "</antThinking>"),  # Claude
    ("<inner_monologue>", "</inner_monologue>"),  # Hermes 3
    ("<reasoning>", "</reasoning>"),  # Reka, and prompts
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),  # prompts
    ("<scratch_pad>", "</scratch_pad>"),
    ("<analysis>", "</analysis>"),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("[THINKING]", "[/THINKING]"),
    ("◁think▷", "◁/think▷"),  # Kimi-VL
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),  # gpt-oss
    ("<|channel|>commentary<|message|>", "<|channel|>final <|constrain|>json<|message|>"),
    ("analysis", "assistantfinal"),  # gpt-oss without its tokens
    ("commentary", "assistantfinal"),
    ("<|channel>thought", "<channel|>"),  # Gemma 4
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    ("<unused94>thought", "<unused95>"),  # MedGemma
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),  # Kimi K3
    ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
]


@pytest.mark.parametrize(("opening", "closing"), MARKS)
def test_every_form_is_recognized(opening: str, closing: str) -> None:
    answer = f"\n{TEXT}"
    assert reply_in(f"{opening}\n{DRAFT}\nNo.{closing}{answer}") == answer
    assert parse_structured_output(f"{opening}{TEXT}{closing}{DRAFT}") == {"number": "B-9", "items": []}
    if closing != "assistantfinal":
        assert reply_in(f"Draft {DRAFT}{closing}{answer}") == answer, "the opening mark may be missing"
        assert parse_structured_output(f"{opening}{DRAFT}") is None, "reasoning that is not closed"
    assert find_tag(f"{opening}[MOVEMENT:1]? No.{closing}[MOVEMENT:2]", 3) == 2


def test_every_tag_has_a_form_and_is_documented() -> None:
    named = {mark.strip("</>").lower() for pair in MARKS for mark in pair}
    assert set(REASONING_TAGS) <= named
    documented = (parse_structured_output.__doc__ or "").lower()
    assert all(f"<{tag}>" in documented for tag in REASONING_TAGS)
    assert len(REASONING_MARKS) == 9  # forms that are no tags; "assistantfinal" is not a mark


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("<think>a</think>b<think>c</think>d", "d"),
        ("<think>a</think>b<think>c", "b"),
        ("<think>a <analysis>b</analysis> c", ""),
        ("<think>a<analysis>b</think>c", "c"),
        ("<think>a</thinking>b", "b"),
        ("a</think>b</think>c", "c"),
        ("<think>a</think>[THINK]b</think>c", "c"),
        ("a <thinker> of b", "a <thinker> of b"),
        ("a [analysis](url) of b", "a [analysis](url) of b"),
        ("a <think/> b", "a <think/> b"),
        ("analysis of b", "analysis of b"),
        ("a <plan>b</plan> c", "a <plan>b</plan> c"),
        # A sentence mentions a mark.
        ("a, in the <analysis> section: b", "a, in the <analysis> section: b"),
        ("a `<think>` and <scratchpad>.", "a `<think>` and <scratchpad>."),
        ("a in the <analysis> form <think>b</think>c", "c"),
        ("a in the <analysis> form b</analysis>c", "c"),
        ("a in the <analysis> form b\n<think>c", "a in the <analysis> form b\n"),
        ("Well. <think> The user", "Well. "),
        ("a\n<think>\nso b", "a\n"),
        ("<think> is `</think>` b", "` b"),
        ("a ```</think>``` b", "``` b"),
        ('<think>{"a": "</think>b', "b"),
        # A mark in a string of JSON belongs to the JSON.
        ('{"a": "<think>b</think>"}', '{"a": "<think>b</think>"}'),
        ('Sure: {"a": ["in <scratchpad>",]}', 'Sure: {"a": ["in <scratchpad>",]}'),
        ('<think>c</think>{"a": "b</think>"} d', '{"a": "b</think>"} d'),
        ('{"a": "b", // c </think>d', "d"),
        ('{"a": 1, "b": [</think>d', "d"),
        ('{"a": "b</think>"}</think>d', "d"),
    ],
)
def test_the_reply_follows_the_last_closing_mark(text: str, reply: str) -> None:
    assert reply_in(text) == reply


@pytest.mark.parametrize("text", ["<" * 200_001, "<think></think>" * 2_000 + "a"])
def test_a_text_of_marks_is_no_reply(text: str) -> None:
    assert reply_in(text) == ""


PIECES = [
    "<think>",
    "</think>",
    "[/THINK]",
    "{",
    "}",
    '"',
    '{"a": 1}',
    "'",
    "//",
    "\n",
    "x, ",
    ":",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_whatever_the_reasoning_is_the_answer_is_read(thought: str) -> None:
    assert parse_structured_output(f"<think>{thought}</think>{TEXT}") == DATA


@pytest.mark.parametrize("mode", ["auto", "native", "tool", "prompt"])
async def test_no_mode_takes_the_draft(mode: Any) -> None:
    with OfflineServer([f"<think>{DRAFT}</think>\n{TEXT}"] * 3) as server:
        context = await invoice_agent(server.bundle(), output_mode=mode).run_async("Read it")
    assert context["invoice"] == DATA


async def test_reasoning_that_is_not_closed_goes_back_to_the_model() -> None:
    model = ScriptedModel([f"<think>{DRAFT} no, wait", TEXT])
    context = await invoice_agent(model, output_mode="prompt").run_async("Read it")
    assert context["invoice"] == DATA
    with pytest.raises(StructuredOutputError):
        await invoice_agent(ScriptedModel([f"<think>{TEXT}"] * 2), output_mode="prompt").run_async("Read it")


async def test_judges_and_scores_and_proposals_take_the_answer() -> None:
    draft, verdict = {"step": 1, "reason": "a"}, {"step": 2, "reason": "b"}
    for reply in (
        f"<think>```{json.dumps(draft)}```</think>{json.dumps(verdict)}",
        "1? [MOVEMENT:1]</think>[MOVEMENT:2]",
    ):
        judge = StatusJudge(["red", "green"], model=ScriptedModel([reply]))
        assert (await judge.judge("All green.")).step == 2
    judged = await StatusJudge(["red", "green"], model=ScriptedModel([])).detect_matched_rule(
        "<think>[MOVEMENT:1]</think>Done. [MOVEMENT:2] <b>"
    )
    assert judged.step == 2
    for kind, wrong, right in (
        (RUBRIC, {"score": 9, "comments": []}, {"score": 2, "comments": ["b"]}),
        (NewPrompt, {"prompt": "x", "changes": "x"}, {"prompt": "Use <think> tags.", "changes": "y"}),
    ):
        reply = f"Draft:\n```json\n{json.dumps(wrong)}\n```\n</think>```json\n{json.dumps(right)}\n```"
        agent: Agent[Any] = Agent(
            "a", "Go.", model=ScriptedModel([reply]), output_type=kind, output_dest="out"
        )
        assert (await agent.run_async("q"))["out"] == right
