"""``Redact`` keeps personal data out of models, answers, streams, results, history and traces."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import attrs
import pytest
from agents import ToolOutputText, TracingProcessor, function_tool, set_trace_processors
from agents.models.interface import ModelTracing
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel

from kantan_agents import Agent, Middleware, ModelCall, Next, Run
from kantan_agents.core.interception import redacted_data
from kantan_agents.errors import InvalidOptionError, RedactedContentBlockedError, StructuredOutputError
from kantan_agents.middleware import Approve, Approved, Redact, resume, to_json
from kantan_agents.middleware.redact.json_text import JsonRedaction, change_json
from kantan_agents.middleware.redact.placeholders import Placeholders, Replacements
from kantan_agents.middleware.redact.redaction import Redaction
from kantan_agents.middleware.redact.rules import make_rules
from kantan_agents.middleware.redact.text import TextRedaction
from kantan_agents.testing import (
    ModelStep,
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.core.interception.streams import SaysItInItems

MAIL = "aiko@example.com"
PHONE = "03-1234-5678"
CARD = "4111 1111 1111 1111"
CLEAR = (MAIL, PHONE, CARD, "4111111111111111")


class Recorded(TracingProcessor):
    """Records everything that the SDK passes to trace processors."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.texts.append(repr(trace.export()))

    def on_trace_end(self, trace: Any) -> None:
        self.texts.append(repr(trace.export()))

    def on_span_start(self, span: Any) -> None:
        pass

    def on_span_end(self, span: Any) -> None:
        data = span.span_data
        more = (getattr(data, "response", None), getattr(data, "input", None))
        self.texts.append(repr((span.export(), span.error, *more)))

    def shutdown(self) -> None:
        pass

    def force_flush(self) -> None:
        pass

    def all(self) -> str:
        return "\n".join(self.texts)


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    set_trace_processors([recorded])
    return recorded


async def run(agent: Agent, how: str, input: Any, context: Any = None) -> tuple[dict[str, Any], list[Any]]:
    context = {} if context is None else context
    if how == "run_async":
        events: list[Any] = []
        with agent.subscribe(events.append):
            return await agent.run_async(input, context), events
    async with agent.stream(input, context) as stream:
        events = [event async for event in stream]
        return stream.context, events


def as_json(events: list[Any], but: str = "run_finished") -> str:
    return "\n".join(event.to_json() for event in events if event.type != but)


HOW = pytest.mark.parametrize("how", ["run_async", "stream"])


# The rules


def redacted(text: str, cuts: list[int] | None = None, rules: Any = None, *, numbered: bool = False) -> str:
    made = make_rules(rules, 16)
    places = Placeholders(list(made))
    replacements = Replacements("mask", b"", numbered=numbered, values={})
    redaction = TextRedaction(made, replacements.place_for, places)
    borders = [0, *sorted(cuts or []), len(text)]
    passed = [redaction.feed(text[a:b]) for a, b in pairwise(borders)]
    return "".join(passed) + redaction.end()


def wide(text: str) -> str:
    """Return a text in full-width letters."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Write to {MAIL}.", "Write to [email]."),
        ("<o'brien+x@ex-ample.co.uk>, 'a@b.jp'", "<[email]>, '[email]'"),
        (f"josé@müller.de {wide('a@b.com')}", "[email] [email]"),
        ("連絡先はa@b.comです", "連絡先は[email]です"),
        ("?mail=a@b.com&x=1", "?mail=[email]&x=1"),
        ("a@b and @c.com and a@b.c", "a@b and @c.com and a@b.c"),
        (f"{'x' * 80}@b.com", f"{'x' * 16}[email]"),
        ("+1 (555) 123-4567, +81312345678", "[phone], [phone]"),
        ("(03) 1234-5678 / 090-1234-5678 / 09012345678", "[phone] / [phone] / [phone]"),
        ("555-123-4567 (555) 123-4567 1-800-555-0199", "[phone] [phone] [phone]"),
        (f"電話{wide(PHONE)}", "電話[phone]"),
        ("138-0013-8000", "[phone]"),
        (f"{CARD}, 4111-1111-1111-1111, 378282246310005", "[card], [card], [card]"),
        ("12 4111 1111 1111 1111 99", "12 [card] 99"),
        ("4111 1111 1111 1112", "4111 1111 1111 1112"),
        ("192.168.0.1:80 and 10.0.0.1.", "[ip]:80 and [ip]."),
        ("fe80::1, 2001:db8::8:800:200c:417a/64 ::1", "[ip], [ip]/64 [ip]"),
        ("host:2001:db8::1 ::ffff:1.2.3.4", "host:[ip] [ip]"),
        ("256.1.1.1 1.2.3 12:30:45 std::vector :: a.b", "256.1.1.1 1.2.3 12:30:45 std::vector :: a.b"),
        ("2026-01-15 12:30:45.123 01-02-2026 10:30", "2026-01-15 12:30:45.123 01-02-2026 10:30"),
        ("1700000000000 1700000000 0.4111111111111111", "1700000000000 1700000000 0.4111111111111111"),
        ("01234567-8901-4234-8567-123456789012", "01234567-8901-4234-8567-123456789012"),
        ("4111111111111111@b.com", "[email]"),
        ("[email] [phone_1] [ip:0123456789012345]", "[email] [phone_1] [ip:0123456789012345]"),
    ],
)
def test_what_the_rules_find(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert redacted(expected) == expected, "redacted text is not changed again"


def test_a_rule_finds_only_its_own_kind() -> None:
    text = f"{MAIL} {PHONE} {CARD} 10.0.0.1"
    assert redacted(text, rules="ip") == f"{MAIL} {PHONE} {CARD} [ip]"
    assert redacted(text, rules=["email", "card"]) == f"[email] {PHONE} [card] 10.0.0.1"


def test_custom_patterns_are_added_to_the_rules() -> None:
    rules = ["email", {"staff": r"\bEMP-\d{4}\b", "token": re.compile(r"tok_\w+")}]
    text = f"EMP-1234 EMP-12345 {MAIL} tok_{'x' * 500}."
    assert redacted(text, rules=rules) == "[staff] EMP-12345 [email] [token]."


def test_overlapping_findings_are_replaced_as_one() -> None:
    assert redacted("id 77-a@b.com-x", rules=["email", {"id": r"\d\d-a@"}]) == "id [email]-x"
    assert redacted("secret a@b.com;", rules=["email", {"all": "secret [^;]+"}]) == "[all];"


def test_a_pattern_does_not_find_a_placeholder() -> None:
    assert redacted("a@b.com 77", rules=["email", {"word": "[a-z]+"}]) == "[email] 77"
    assert redacted("[email] 77", rules=["email", {"word": "[a-z]+"}]) == "[email] 77"


PIECES = st.sampled_from(
    [
        *'ab1409@.+-() :_e[]\n"\\é',
        MAIL,
        CARD,
        PHONE,
        wide("4"),
        "+1 555 123 4567",
        "ISBN ",
        "978-2-07-036822-8",
        "192.168.1.1",
        "fe80::1",
        "[email]",
        "[email_1",
        "EMP-1234",
        "tok_" + "x" * 40,
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)
RULES = (None, ["email", {"staff": r"\bEMP-\d{4}\b", "token": r"tok_\w+"}], {"pair": r"(?s)a.{0,9}b"})


@given(text=TEXTS, cuts=st.lists(st.integers(0, 200), max_size=20), rules=st.sampled_from(RULES))
def test_a_text_split_anywhere_is_redacted_like_the_whole_text(
    text: str, cuts: list[int], rules: Any
) -> None:
    whole = redacted(text, rules=rules, numbered=True)
    assert redacted(text, [min(cut, len(text)) for cut in cuts], rules, numbered=True) == whole
    assert redacted(text, list(range(len(text))), rules, numbered=True) == whole


TOKEN = "a1B2" * 10
OF_SECRETS = st.sampled_from(
    [
        *"a1 \n\"'=:,-\\[]{}()@/.",
        "  ",
        "api_key",
        "PASSWORD",
        "x-api-key",
        "authorization",
        "token",
        "secret",
        "--",
        "=>",
        "Bearer",
        "basic ",
        "ghp_",
        "sk-",
        "eyJ",
        "AKIA",
        "://",
        "u:p@",
        TOKEN,
        'b"',
        "%3D",
        "\\n",
        '\\"',
        '": "',
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
        MAIL,
        PHONE,
        "[secret]",
    ]
)
SECRET_TEXTS = st.lists(OF_SECRETS, max_size=24).map("".join)


@settings(max_examples=300)
@given(
    text=SECRET_TEXTS,
    cuts=st.lists(st.integers(0, 200), max_size=20),
    rules=st.sampled_from((None, "secret")),
)
@example(text=f'Bearer": "api_key={MAIL}', cuts=[], rules=None)
def test_a_text_with_secrets_split_anywhere_is_redacted_like_the_whole_text(
    text: str, cuts: list[int], rules: Any
) -> None:
    whole = redacted(text, rules=rules, numbered=True)
    assert redacted(text, [min(cut, len(text)) for cut in cuts], rules, numbered=True) == whole
    assert redacted(text, list(range(len(text))), rules, numbered=True) == whole
    assert redacted(whole, rules=rules, numbered=True) == whole


@pytest.mark.parametrize("number", [PHONE, "10.0.0.1", "03-1234"])
def test_a_number_that_directly_follows_an_address_is_redacted_with_it(number: str) -> None:
    assert redacted(f"Ask {MAIL}{number}.", numbered=True) == "Ask [email_1]."


@given(before=TEXTS, after=TEXTS, cuts=st.lists(st.integers(0, 200), max_size=20))
def test_an_address_is_never_emitted_however_the_text_is_split(
    before: str, after: str, cuts: list[int]
) -> None:
    text = f"{before} {MAIL} {after}"
    assert MAIL not in redacted(text, [min(cut, len(text)) for cut in cuts])


def test_only_text_that_may_be_part_of_a_finding_is_withheld() -> None:
    made = make_rules(None, 128)
    replace = Replacements("mask", b"", numbered=False, values={}).place_for
    redaction = TextRedaction(made, replace, Placeholders(list(made)))
    assert redaction.feed("Hello, w") == "Hello, "
    assert redaction.feed("orld! Write to aiko") == "world! Write to "
    assert redaction.feed("@example.c") == ""
    assert redaction.feed("om or") == "[email] "
    assert redaction.end() == "or"


@given(
    value=st.recursive(
        TEXTS | st.integers() | st.booleans(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=8,
    ),
    cuts=st.lists(st.integers(0, 300), max_size=12),
    ensure_ascii=st.booleans(),
)
def test_json_stays_valid_and_is_the_same_if_streamed(
    value: Any, cuts: list[int], ensure_ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii)
    whole = change_json(text, lambda part, _: redacted(part))
    json.loads(whole)
    assert MAIL not in whole
    borders = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    redaction = JsonRedaction(lambda part, _: redacted(part))
    passed = [redaction.feed(text[a:b]) for a, b in pairwise(borders)]
    assert "".join(passed) + redaction.end() == whole


NAMED = st.recursive(
    st.sampled_from(["x", "hunter2", 7, None, True]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["password", "api_key", "plain", "list"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(value=NAMED, cuts=st.lists(st.integers(0, 200), max_size=12))
def test_values_in_json_are_changed_by_their_key_and_alike_if_streamed(value: Any, cuts: list[int]) -> None:
    def change(part: str, key: str) -> str:
        return f"[{key}]" if key in ("password", "api_key") else part

    def expected(inner: Any, key: str = "") -> Any:
        if isinstance(inner, dict):
            return {name: expected(item, name) for name, item in inner.items()}
        if isinstance(inner, list):
            return [expected(item, key) for item in inner]
        is_text = inner is not None and inner is not True
        return f"[{key}]" if is_text and key in ("password", "api_key") else inner

    text = json.dumps(value)
    whole = change_json(text, change)
    assert json.loads(whole) == expected(value)
    borders = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    redaction = JsonRedaction(change)
    assert "".join(redaction.feed(text[a:b]) for a, b in pairwise(borders)) + redaction.end() == whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("03-1234-5678,090-1111-2222", "[phone],[phone]"),
        ("0312345678,09011112222", "[phone],[phone]"),
        ("03-1234-5678.03-1234-5678", "[phone].[phone]"),
        ("03-1234-5678.0312345678", "[phone].[phone]"),
        ("4111111111111111,5500005555555559", "[card],[card]"),
        ("0120-123-456,0120-123-456", "[phone],[phone]"),
        ("+81 3 1234 5678,4111111111111111", "[phone],[card]"),
        ("7,090-1111-2222", "7,[phone]"),
        ("1,03-1234-5678", "1,[phone]"),
        ("100,0120-123-456", "100,[phone]"),
        ("-1234.0123456789", "-1234.0123456789"),
        ("T-2024.000000000", "T-2024.000000000"),
        ("v1.02-345-678", "v1.02-345-678"),
        ("1.01-2-345", "1.01-2-345"),
        ("2.00-10-100", "2.00-10-100"),
        ("5.012-34-567", "5.012-34-567"),
        ("12345,0123456789", "12345,0123456789"),
        ("id,3.0123456789", "id,3.0123456789"),
        ("12345.0123456789", "12345.0123456789"),
        ("0.4111111111111111", "0.4111111111111111"),
        ("1,012,345,678 and 1,0123456789", "1,012,345,678 and 1,0123456789"),
        ("7.02-03-2024", "7.02-03-2024"),
    ],
)
def test_each_number_of_a_list_is_found_and_no_part_of_another_number(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert redacted(text, list(range(len(text)))) == expected


def test_digits_within_an_id_are_no_card_number() -> None:
    for text in ("01a20508e4111111111111111a4786d", "sha256:0f4111111111111111b2"):
        assert redacted(text) == text
        assert redacted(text, list(range(len(text)))) == text
    for text in ("card4111111111111111", "4111111111111111f", "no 4111111111111111."):
        assert "4111" not in redacted(text)
        assert "4111" not in redacted(text, list(range(len(text))))


def test_a_placeholder_in_a_pair_of_names_is_no_secret() -> None:
    once = redacted('api_key","\'aiko@example.com', numbered=True)
    assert redacted(once, numbered=True) == once


@given(
    parts=st.lists(
        st.sampled_from(
            ["`", "*", "**", " ", "\n", ":", "=", '"', ",", ")", "api_key", "Password", "a1b2c3d4e5"]
        ),
        max_size=14,
    ),
    cuts=st.lists(st.integers(0, 60), max_size=12),
)
def test_secrets_in_markdown_are_redacted_alike_if_streamed(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert redacted(text, [min(cut, len(text)) for cut in cuts], ["secret"]) == redacted(
        text, None, ["secret"]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sure! Ask aiko@example.com.", "Sure! Ask [email]."),
        ('{"text": aiko@example.com}', '{"text": [email]}'),
        ('{"password": hunter22, "n": 1}', '{"password": [secret], "n": 1}'),
        ('{"a": null, "b": nullable aiko@example.com', '{"a": null, "b": nullable [email]'),
        ('{"a": "x"} Call +81 3 1234 5678', '{"a": "x"} Call [phone]'),
        ('```json\n{"a": "aiko@example.com"}\n```', '```json\n{"a": "[email]"}\n```'),
        ('{"a": tru', '{"a": tru'),
        ("null", "null"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_text_that_should_be_json_and_is_not_is_redacted(text: str, expected: str, size: int) -> None:
    rules = make_rules(None, 128)
    masks = Replacements("mask", b"", numbered=False, values={})
    redaction = Redaction(rules, Placeholders(rules), masks)
    rewriter = redaction.rewriter(is_json=True, restore=False)
    pieces = [text[place : place + size] for place in range(0, len(text), size)]
    assert "".join(map(rewriter.feed, pieces)) + rewriter.end() == expected
    answer = redaction.answer(assistant_message(text), is_json=True)
    assert answer.content[0].text == expected


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_in_prose_instead_of_json_is_redacted(streamed: bool, recorded: Recorded) -> None:
    class Out(BaseModel):
        a: str

    events: list[Any] = []
    model = ScriptedModel([[assistant_message(f"Sure! Ask {MAIL}.")]] * 9)
    desk = Agent("desk", "Help.", model=model, output_type=Out, middleware=[Redact()])
    with desk.subscribe(events.append), pytest.raises(StructuredOutputError) as caught:
        if streamed:
            async with desk.stream("Hello") as stream:
                events += [event async for event in stream]
        else:
            await desk.run_async("Hello")
    seen = [*(event.to_json() for event in events), str(caught.value), repr(model.calls), recorded.all()]
    assert MAIL not in "\n".join(seen)


def test_a_number_in_json_becomes_a_string_and_escapes_are_decoded() -> None:
    text = '{"n": 4111111111111111, "m": "\\naiko\\u0040example.com", "k": 1.5e3}'
    assert (
        change_json(text, lambda part, _: redacted(part)) == '{"n": "[card]", "m": "\\n[email]", "k": 1.5e3}'
    )


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a@",
        "@",
        "1 ",
        "4111 ",
        "1:",
        "::1",
        "1.1.",
        "00 ",
        "+1",
        "[email",
        "tok_",
        "a.",
        "(",
        "555-",
        "0",
        "api_key=",
        'password="',
        "password='x",
        "authorization: ",
        "secret, '",
        "Bearer ",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "eyJaaaaaaaa.",
        "sk-",
        "--token ",
        "\\",
        'token = \\"',
    ],
)
def test_an_adversarial_text_takes_linear_time(unit: str) -> None:
    # Long texts: anything slower than linear would exceed the time limit of the test run.
    text = unit * (100_000 // len(unit))
    assert len(redacted(text, rules=["email", "phone", "card", "ip", "secret", {"token": r"tok_\w+"}])) > 0


def test_a_long_text_in_small_pieces_takes_linear_time() -> None:
    text = "tok_" + "x" * 200_000
    assert redacted(text, list(range(0, len(text), 5)), {"token": r"tok_\w+"}) == "[token]"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rules": ["mail"]}, "there is no rule 'mail'"),
        ({"rules": []}, "there are none"),
        ({"rules": 3}, "must be names"),
        ({"rules": [{"x": "("}]}, "pattern"),
        ({"rules": [{"x": "a*"}]}, "empty text"),
        ({"rules": [{"x": b"a"}]}, "pattern"),
        ({"rules": [{"email": "a"}]}, "the name of a pattern"),
        ({"rules": [{"a b": "a"}]}, "the name of a pattern"),
        ({"mode": "hide"}, "must be mask, hash or block"),
        ({"mode": "block", "restore": True}, "nothing to restore"),
        ({"keep_in": "kept"}, "restore=True"),
        ({"key": "secret"}, "must be bytes"),
        ({"key": b""}, "must be bytes"),
        ({"longest": 0}, "must be an int, 1 to"),
        ({"longest": True}, "must be an int, 1 to"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(reason)):
        Redact(**options)


# A run


def lookup(mail: str) -> str:
    """Look up who has an address."""
    return f"{mail} has {PHONE}"


def agent(model: Any, *middleware: Any, tools: Any = (lookup,), **options: Any) -> Agent:
    return Agent("desk", "Help.", model=model, tools=tools, middleware=middleware, **options)


def answers_with_all(call: Any) -> list[Any]:
    return [assistant_message(f"{call.input[0]['content']}; {call.input[-1]['output']}; {CARD}")]


def looking_up(mail: str) -> ScriptedModel:
    return ScriptedModel(
        [[function_call("lookup", {"mail": mail}, call_id="c")], ModelStep.respond(answers_with_all)]
    )


@HOW
async def test_no_original_value_reaches_model_events_result_history_or_trace(
    how: str, recorded: Recorded
) -> None:
    model = looking_up(MAIL)
    context, events = await run(agent(model, Redact()), how, f"I am {MAIL}")
    assert context["result"].final_output == "I am [email]; [email] has [phone]; [card]"
    assert context["history"][0] == {"role": "user", "text": "I am [email]"}
    items = context["result"].to_input_list()
    everything = (
        model.calls,
        as_json(events, ""),
        recorded.all(),
        context["history"],
        items,
        context["result"],
    )
    for clear in CLEAR:
        assert clear not in repr(everything)
    assert "I am [email]; [email] has [phone]; [card]" in recorded.all()


@HOW
async def test_with_restore_only_tools_stream_and_answer_get_the_values(how: str, recorded: Recorded) -> None:
    got: list[str] = []

    def lookup(mail: str) -> str:
        """Look up who has an address."""
        got.append(mail)
        return f"{mail} has {PHONE}"

    model = looking_up("[email_1]")
    desk = agent(model, Redact(restore=True), tools=[lookup])
    context, events = await run(desk, how, f"I am {MAIL}")
    assert got == [MAIL]
    answer = f"I am {MAIL}; {MAIL} has {PHONE}; {CARD}"
    assert context["result"].final_output == answer
    assert events[-1].output == answer
    if how == "stream":
        assert "".join(event.text for event in events if event.type == "text_delta") == answer
    assert context["history"][1]["text"] == "I am [email_1]; [email_1] has [phone_1]; [card_1]"
    calls = "".join(event.to_json() for event in events if event.type.startswith("tool_call"))
    for clear in CLEAR:
        assert clear not in repr((model.calls, recorded.all(), context["history"], calls))


async def test_with_restore_a_refused_call_is_recorded_as_the_model_wrote_it(recorded: Recorded) -> None:
    desk = agent(looking_up("[email_1]"), Redact(restore=True))
    rules = {"tool_rules": {"params": {"lookup": {"mail": {"maxLength": 3}}}}}
    context, _ = await run(desk, "run_async", f"I am {MAIL}", rules)
    assert "E14" in repr(context["result"].to_input_list())
    assert "tool_refused" in recorded.all()
    assert MAIL not in recorded.all()


@pytest.mark.parametrize("api", ["responses", "chat"])
@HOW
async def test_the_real_client_neither_sends_nor_records_an_original_value(
    how: str, api: Any, recorded: Recorded
) -> None:
    script: list[Any] = [ScriptedToolCall("lookup", {"mail": MAIL}), f"Card {CARD}, mail {MAIL}."]
    with OfflineServer(script) as server:
        desk = agent(server.bundle(api=api), Redact())
        context, events = await run(desk, how, [{"role": "user", "content": f"I am {MAIL}"}])
    assert context["result"].final_output == "Card [card], mail [email]."
    if how == "stream":
        deltas = [event.text for event in events if event.type == "text_delta"]
        assert "".join(deltas) == "Card [card], mail [email]."
    bodies = [request.body for request in server.requests]
    for clear in CLEAR:
        assert clear not in repr((bodies, as_json(events, ""), recorded.all()))
    assert "[email] has [phone]" in repr(bodies[1])
    assert "'input_tokens': " in recorded.all(), "usage is recorded as before"


class LetterByLetter(ScriptedModel):
    """Streams its answer letter by letter."""

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        async for event in super().stream_response(*args, **kwargs):
            if isinstance(event, ResponseTextDeltaEvent):
                for letter in event.delta:
                    yield event.model_copy(update={"delta": letter})
            else:
                yield event


@pytest.mark.parametrize("restore", [False, True])
async def test_an_answer_streamed_letter_by_letter_equals_the_answer(restore: bool) -> None:
    text = f"Mail {MAIL} or [email_1], card {CARD}, [nothing], call {PHONE}"
    model = LetterByLetter([[assistant_message(text)]])
    context, events = await run(agent(model, Redact(restore=restore)), "stream", "Hello")
    deltas = [event.text for event in events if event.type == "text_delta"]
    assert "".join(deltas) == context["result"].final_output
    assert len(deltas) > 10, "it is still a stream"
    if not restore:
        assert (
            context["result"].final_output
            == "Mail [email] or [email_1], card [card], [nothing], call [phone]"
        )


class Contact(BaseModel):
    mail: str
    note: str


@pytest.mark.parametrize("restore", [False, True])
@HOW
async def test_a_structured_answer_stays_valid(how: str, restore: bool, recorded: Recorded) -> None:
    written = '{"mail": "aiko\\u0040example.com", "note": "say \\"hi\\"\\n03-1234-5678"}'
    model = LetterByLetter([[assistant_message(written)]])
    desk = agent(model, Redact(restore=restore), output_type=Contact, output_dest="contact")
    context, events = await run(desk, how, "Hello")
    masked = {"mail": "[email]", "note": 'say "hi"\n[phone]'}
    expected = {"mail": MAIL, "note": f'say "hi"\n{PHONE}'} if restore else masked
    assert context["contact"] == expected
    assert context["result"].final_output == Contact(**expected)
    if how == "stream":
        streamed = "".join(event.text for event in events if event.type == "text_delta")
        assert Contact.model_validate_json(streamed) == Contact(**expected)
    assert MAIL not in recorded.all()
    assert PHONE not in repr((recorded.all(), context["history"]))


async def test_values_are_escaped_in_json_arguments() -> None:
    got: list[str] = []

    def note(text: str) -> str:
        """Note."""
        got.append(text)
        return "noted"

    model = ScriptedModel(
        [[function_call("note", {"text": "<[quote_1]>"}, call_id="c")], [assistant_message("Done.")]]
    )
    rules = {"quote": r'".*?"\\'}
    await agent(model, Redact(rules, restore=True), tools=[note]).run_async('He said "a\tb"\\.')
    assert got == ['<"a\tb"\\>']


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (MAIL, "[email]"),
        (
            '{"mail": "aiko\\u0040example.com", "card": 4111111111111111}',
            '{"mail": "[email]", "card": "[card]"}',
        ),
        ({MAIL: [4111111111111111, True, None]}, "{'[email]': ['[card]', True, None]}"),
        (ToolOutputText(text=MAIL), [{"type": "input_text", "text": "[email]"}]),
    ],
)
async def test_results_of_every_type_are_redacted(result: Any, expected: Any) -> None:
    @function_tool
    def fetch() -> Any:
        """Fetch."""
        return result

    model = ScriptedModel([[function_call("fetch", {}, call_id="c")], [assistant_message("Done.")]])
    await agent(model, Redact(), tools=[fetch]).run_async("Hello")
    assert model.last_call is not None
    assert model.last_call.input[-1]["output"] == expected


async def test_an_unchanged_result_is_passed_on_as_the_same_object() -> None:
    @attrs.frozen
    class Answer:
        text: str

    seen: list[Any] = []

    class Outside(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            seen.append(await call_next(call))
            return seen[-1]

    answer = Answer("nothing")

    @function_tool
    def fetch() -> Any:
        """Fetch."""
        return answer

    model = ScriptedModel([[function_call("fetch", {}, call_id="c")], [assistant_message("Done.")]])
    await agent(model, Outside(), Redact(), tools=[fetch]).run_async("Hello")
    assert seen[0] is answer


@pytest.mark.parametrize("raises", [False, True])
async def test_the_error_of_a_tool_is_redacted(raises: bool, recorded: Recorded) -> None:
    options: dict[str, Any] = {"failure_error_function": None if raises else lambda _, error: str(error)}

    def fetch() -> str:
        """Fetch."""
        raise LookupError(f"nobody has {MAIL}")

    model = ScriptedModel([[function_call("fetch", {}, call_id="c")], [assistant_message("Done.")]])
    desk = agent(model, Redact(), tools=[function_tool(fetch, **options)])
    events: list[Any] = []
    with desk.subscribe(events.append):
        if raises:
            with pytest.raises(Exception, match=re.escape("nobody has [email]")):
                await desk.run_async("Hello")
        else:
            await desk.run_async("Hello")
            assert "nobody has [email]" in model.calls[1].input[-1]["output"]
    assert MAIL not in recorded.all()
    assert MAIL not in as_json(events, "")


async def test_instructions_are_not_redacted() -> None:
    model = ScriptedModel([[assistant_message("Hello")]])
    desk = Agent("desk", f"Complaints go to {MAIL}.", model=model, middleware=[Redact()])
    await desk.run_async("Hello")
    assert model.calls[0].system_instructions == f"Complaints go to {MAIL}."


async def test_ids_and_files_are_not_changed() -> None:
    model = ScriptedModel([[assistant_message("Hello")]])
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{'4111111111111111' * 9}"}
    given: Any = [{"role": "user", "content": [image, {"type": "input_text", "text": MAIL}]}]
    await agent(model, Redact()).run_async(given)
    assert model.calls[0].input[0]["content"] == [image, {"type": "input_text", "text": "[email]"}]
    assert given[0]["content"][1]["text"] == MAIL, "the caller's items are unchanged"


async def test_equal_values_have_equal_hashes_with_the_same_key_only() -> None:
    async def hashed(redact: Redact) -> list[str]:
        model = ScriptedModel([[assistant_message("Hello")]])
        await agent(model, redact).run_async(f"{MAIL} a@b.com {MAIL}")
        return str(model.calls[0].input[0]["content"]).split()

    first, other, again = await hashed(Redact(mode="hash", key=b"key"))
    assert re.fullmatch(r"\[email:[0-9a-f]{16}\]", first)
    assert first == again != other
    assert await hashed(Redact(mode="hash", key=b"key")) == [first, other, again]
    assert (await hashed(Redact(mode="hash")))[0] not in (first, (await hashed(Redact(mode="hash")))[0])


async def test_hashes_can_be_restored() -> None:
    model = ScriptedModel([ModelStep.respond(lambda call: [assistant_message(call.input[0]["content"])])])
    context = await agent(model, Redact(mode="hash", restore=True)).run_async(f"I am {MAIL}")
    assert context["result"].final_output == f"I am {MAIL}"


BLOCKED: dict[str, tuple[str, Any]] = {
    "the input": (f"I am {MAIL}", [[assistant_message("Hello")]]),
    "the arguments of a tool": ("Hello", [[function_call("lookup", {"mail": MAIL}, call_id="c")]]),
    "the result of lookup": (
        "Hello",
        [[function_call("lookup", {"mail": "x"}, call_id="c")], [assistant_message("Hello")]],
    ),
    "the answer": ("Hello", [[assistant_message(f"I am {MAIL}")]]),
}


@pytest.mark.parametrize("where", BLOCKED)
@HOW
async def test_blocking_ends_the_run_and_the_error_names_the_rule_but_not_the_value(
    how: str, where: str, recorded: Recorded
) -> None:
    given, steps = BLOCKED[where]
    context: dict[str, Any] = {}
    events: list[Any] = []
    desk = agent(LetterByLetter(steps), Redact(mode="block"))
    with desk.subscribe(events.append), pytest.raises(RedactedContentBlockedError) as raised:
        await run(desk, how, given, context)
    assert raised.value.where == where
    assert raised.value.rule == ("phone" if "result" in where else "email")
    assert context.get("history", []) == []
    for clear in CLEAR:
        assert clear not in repr((str(raised.value), as_json(events, ""), recorded.all()))
    assert events[-1].type == "run_failed"
    assert events[-1].code == "E84"


async def test_blocking_allows_other_text() -> None:
    context = await agent(ScriptedModel([[assistant_message("Hi")]]), Redact(mode="block")).run_async("Hello")
    assert context["result"].final_output == "Hi"


async def test_a_placeholder_of_an_earlier_run_is_not_given_to_another_value() -> None:
    model = ScriptedModel([ModelStep.respond(lambda call: [assistant_message(call.input[0]["content"])])])
    context = await agent(model, Redact(restore=True)).run_async(f"{MAIL} is not [email_1]")
    assert model.calls[0].input[0]["content"] == "[email_2] is not [email_1]"
    assert context["result"].final_output == f"{MAIL} is not [email_1]"


async def test_values_stored_in_the_context_are_used_in_later_runs() -> None:
    def answer(call: Any) -> list[Any]:
        return [assistant_message("You are [email_1], not [email_2]")]

    desk = agent(ScriptedModel([ModelStep.respond(answer)] * 2), Redact(restore=True, keep_in="kept"))
    context = await desk.run_async(f"I am {MAIL}", {})
    assert context["kept"] == {"[email_1]": MAIL}
    context = await desk.run_async("I am not b@c.org", context)
    assert context["result"].final_output == f"You are {MAIL}, not b@c.org"
    assert context["kept"] == {"[email_1]": MAIL, "[email_2]": "b@c.org"}


async def test_values_of_a_failed_run_are_not_stored() -> None:
    context: dict[str, Any] = {}
    with pytest.raises(LookupError):
        await agent(ScriptedModel([LookupError("no")]), Redact(restore=True, keep_in="kept")).run_async(
            MAIL, context
        )
    assert "kept" not in context


async def test_a_resumed_run_restores_values_found_before_it_was_stored() -> None:
    got: list[str] = []

    def send(mail: str) -> str:
        """Send."""
        got.append(mail)
        return f"sent to {mail}"

    def make(*steps: Any) -> Agent:
        middleware = [Approve("send"), Redact(restore=True, keep_in="kept")]
        return agent(ScriptedModel(steps), *middleware, tools=[send])

    pausing = make([function_call("send", {"mail": "[email_1]"}, call_id="c")])
    text = to_json(await pausing.run_async(f"Write to {MAIL}"), key=b"k" * 16)
    resumed = make([assistant_message("Sent to [email_1].")])
    context = await resume(resumed, text, {"c": Approved()}, key=b"k" * 16)
    assert got == [MAIL]
    assert context["result"].final_output == f"Sent to {MAIL}."


async def test_disabled_tracing_stays_disabled(recorded: Recorded) -> None:
    seen: list[Any] = []

    class Inside(Middleware):
        async def model_call(self, call: ModelCall, call_next: Any) -> Any:
            seen.append(call.options["tracing"])
            return await call_next(call)

    for config in ({"tracing_disabled": True}, {"trace_include_sensitive_data": False}, {}):
        model = ScriptedModel([[assistant_message("Hello")]])
        await agent(model, Redact(), Inside()).run_async("A word", run_config=config)
        if config:
            assert "A word" not in recorded.all()
    assert seen == [
        ModelTracing.DISABLED,
        ModelTracing.ENABLED_WITHOUT_DATA,
        ModelTracing.ENABLED_WITHOUT_DATA,
    ]


# Stream rewriters of ``ModelCall``


class Upper(Middleware):
    """Rewrites the stream in upper case, withholds one letter, and appends a mark."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    async def model_call(self, call: ModelCall, call_next: Any) -> Any:
        mark = self.mark

        class Rewriter:
            withheld = ""

            def feed(self, piece: str) -> str:
                text, self.withheld = (self.withheld + piece)[:-1], piece[-1:]
                return text.upper()

            def end(self) -> str:
                return f"{self.withheld.upper()}{mark}"

        call.rewriters = (*call.rewriters, Rewriter)
        return await call_next(call)


async def test_rewriters_change_the_stream_innermost_first_but_not_the_answer() -> None:
    model = LetterByLetter([[assistant_message("abc")]])
    context, events = await run(agent(model, Upper("1"), Upper("2")), "stream", "Hello")
    assert "".join(event.text for event in events if event.type == "text_delta") == "ABC21"
    assert context["result"].final_output == "abc"


async def test_each_text_of_an_answer_has_its_own_rewriter() -> None:
    messages = [assistant_message("ab", item_id="m1"), assistant_message("cd", item_id="m2")]
    _, events = await run(agent(LetterByLetter([messages]), Upper(".")), "stream", "Hello")
    assert "".join(event.text for event in events if event.type == "text_delta") == "AB.CD."


async def test_internal_calls_are_not_rewritten() -> None:
    made: list[Any] = []

    class Rewriter:
        def __init__(self) -> None:
            made.append(self)

        def feed(self, piece: str) -> str:
            return piece

        def end(self) -> str:
            return ""

    class Internal(Middleware):
        async def model_call(self, call: ModelCall, call_next: Any) -> Any:
            call.rewriters = (*call.rewriters, Rewriter)
            return await call_next(call.internally())

    context, _ = await run(agent(ScriptedModel([[assistant_message("abc")]]), Internal()), "stream", "Hello")
    assert context["result"].final_output == "abc"
    assert made == []


async def test_an_answer_that_is_streamed_only_as_items_is_redacted_too() -> None:
    model = SaysItInItems([[assistant_message(f"I am {MAIL}")]])
    context, _ = await run(agent(model, Redact()), "stream", "Hello")
    assert context["result"].final_output == "I am [email]"


async def test_the_input_of_a_run_that_fails_before_its_first_stage_is_recorded_redacted(traces: Any) -> None:
    def no_metadata(_context: Any) -> Any:
        raise LookupError("no such customer")

    agent = Agent("a", "x", model=ScriptedModel([]), metadata=no_metadata, middleware=[Redact(["email"])])
    with pytest.raises(LookupError, match="no such customer"):
        await agent.run_async("Write to ann@example.com, please.")
    assert len(traces.traces(keywords=["please"], has_error=True)) == 1
    assert not traces.traces(keywords=["ann@example.com"])


async def test_what_was_put_back_leaves_the_run_with_its_placeholder() -> None:
    left: list[Any] = []

    async def outside(run: Run, call_next: Next) -> None:
        await call_next(run)
        left.append(redacted_data(run, run.context["result"].final_output))

    model = ScriptedModel(["It is [secret_1]."])
    agent = Agent("a", "Help.", model=model, middleware=[outside, Redact(restore=True)])
    context = await agent.run_async("My password: hunter2345")
    # Alone, the value does not look like a password.
    assert context["result"].final_output == "It is hunter2345."
    assert left == ["It is [secret_1]."]
