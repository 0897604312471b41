"""``Redact`` hides a value wherever it could leave a run: errors, events, logs, traces, results, requests."""

from __future__ import annotations

import asyncio
import base64
import builtins
import json
import logging
import math
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import attrs
import pytest
from agents import function_tool, set_trace_processors
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from typing_extensions import Self

from kantan_agents import Agent, Middleware, SQLiteRecorder
from kantan_agents.middleware import Redact, Retry, ToolErrors
from kantan_agents.middleware.redact.exceptions import redacted_exception
from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, assistant_message, function_call
from tests.middleware.test_redact import Recorded

MAIL = "aiko@example.com"


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    set_trace_processors([recorded])
    return recorded


class Seen:
    """Everything that left one run."""

    def __init__(
        self, model: ScriptedModel, recorded: Recorded, log: pytest.LogCaptureFixture | None
    ) -> None:
        self.model, self.recorded, self.log = model, recorded, log
        self.events: list[Any] = []
        self.error: BaseException | None = None

    def text(self) -> str:
        log = self.log
        parts = [
            repr(self.model.calls),
            self.recorded.all(),
            *(event.to_json() for event in self.events),
            "" if log is None else log.text,
            "" if log is None else "".join(repr(vars(record)) for record in log.records),
        ]
        if self.error is not None:
            parts += traceback.format_exception(self.error)
            parts += [repr(self.error), repr(self.error.args)]
        return "\n".join(parts)


async def see(
    *middleware: Any,
    recorded: Recorded,
    log: pytest.LogCaptureFixture | None = None,
    tool: Callable[[], Any] | None = None,
    steps: Any = None,
    streamed: bool = False,
    input: Any = "Hello",
    failure: Any = "default",
    **options: Any,
) -> Seen:
    """Run an agent whose model calls ``tool`` once, and return everything that left the run."""
    call, answer = [function_call("fetch", {}, call_id="c")], [assistant_message("Done.")]
    model = ScriptedModel(steps if steps is not None else [call, answer])
    given = {} if failure == "default" else {"failure_error_function": failure}
    tools = [] if tool is None else [function_tool(tool, name_override="fetch", **given)]
    desk = Agent("desk", "Help.", model=model, tools=tools, middleware=list(middleware), **options)
    seen = Seen(model, recorded, log)
    with desk.subscribe(seen.events.append):
        try:
            if streamed:
                async with desk.stream(input) as stream:
                    async for _ in stream:
                        pass
            else:
                await desk.run_async(input)
        except Exception as error:  # noqa: BLE001 - looked at by the test
            seen.error = error
    return seen


class OwnTextError(Exception):
    """An exception whose text is in none of its arguments."""

    def __init__(self, mail: str) -> None:
        super().__init__()
        self.mail = mail

    def __str__(self) -> str:
        return f"nobody has {self.mail}"


class SlottedError(Exception):
    __slots__ = ("mail",)

    def __init__(self, mail: str) -> None:
        self.mail = mail

    def __str__(self) -> str:
        return self.mail


class DemandingError(RuntimeError):
    """An exception that cannot be created with the arguments that it reports."""

    def __new__(cls, *, mail: str) -> Self:
        assert mail
        return super().__new__(cls)

    def __init__(self, *, mail: str) -> None:
        super().__init__("failed", {"to": [mail]})


class Contact(BaseModel):
    age: int


def no_file(text: str) -> None:
    open(f"/nonexistent/{text}")  # noqa: PTH123, SIM115


def failed_process(text: str) -> None:
    subprocess.run([sys.executable, "-c", "raise SystemExit(3)", text], check=True)


def invalid(text: str) -> None:
    Contact.model_validate({"age": text})


def own_text(text: str) -> None:
    raise OwnTextError(text)


def slotted(text: str) -> None:
    raise SlottedError(text)


def demanding(text: str) -> None:
    raise DemandingError(mail=text)


def no_key(text: str) -> None:
    vars(math)[text]


def not_text(text: str) -> None:
    text.encode("utf-16").decode("ascii", "strict") if False else f"{text}\udc80".encode()


def as_bytes(text: str) -> None:
    raise OSError(text.encode())


def chained(text: str) -> None:
    try:
        own_text(text)
    except OwnTextError as error:
        raise LookupError("not found") from error


def in_context(text: str) -> None:
    try:
        no_file(text)
    except OSError:
        raise LookupError("not found")  # noqa: B904


def noted(text: str) -> None:
    error = LookupError("not found")
    error.__notes__ = [f"for {text}"]  # as `add_note` does, from Python 3.11 on
    raise error


def grouped(text: str) -> None:
    if sys.version_info < (3, 11):
        own_text(text)
    else:
        group: Any = vars(builtins)["ExceptionGroup"]
        raise group("several", [ValueError("one"), group(text, [OwnTextError(text)])])


FAILURES = (
    no_file,
    failed_process,
    invalid,
    own_text,
    slotted,
    demanding,
    no_key,
    not_text,
    as_bytes,
    chained,
    in_context,
    noted,
    grouped,
)
MIDDLEWARE: dict[str, Callable[[], list[Any]]] = {
    "alone": lambda: [Redact()],
    "before the message": lambda: [Redact(), ToolErrors("message")],
    "before a fixed text": lambda: [Redact(), ToolErrors()],
    "after the message": lambda: [ToolErrors("message"), Redact()],
    "before retries": lambda: [
        Redact(),
        ToolErrors("message"),
        Retry(2, tools=["fetch"], initial_delay=0.001),
    ],
    "before the end": lambda: [Redact(), ToolErrors("raise")],
}


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("order", MIDDLEWARE)
async def test_the_text_of_a_tools_exception_leaves_the_run_redacted(
    order: str,
    failure: Callable[[str], None],
    recorded: Recorded,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    def fetch() -> str:
        failure(MAIL)
        return "never"

    seen = await see(*MIDDLEWARE[order](), recorded=recorded, log=caplog, tool=fetch)
    assert MAIL not in seen.text()
    assert (seen.error is not None) == (order == "before the end")


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_text_of_a_models_exception_leaves_the_run_redacted(
    streamed: bool,
    failure: Callable[[str], None],
    recorded: Recorded,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    class Failing(ScriptedModel):
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            failure(MAIL)

        async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            failure(MAIL)
            yield

    model = Failing([])
    desk = Agent("desk", "Help.", model=model, middleware=[Redact()])
    seen = Seen(model, recorded, caplog)
    with desk.subscribe(seen.events.append):
        try:
            if streamed:
                async with desk.stream("Hello") as stream:
                    async for _ in stream:
                        pass
            else:
                await desk.run_async("Hello")
        except Exception as error:  # noqa: BLE001 - looked at below
            seen.error = error
    assert seen.error is not None
    assert MAIL not in seen.text()
    finished = [event for event in seen.events if event.type == "model_call_finished"]
    assert [event.outcome for event in finished] == ["failed"]
    assert finished[0].error_type == seen.error.__class__.__name__


async def test_the_answer_of_a_failing_server_leaves_the_run_redacted(
    recorded: Recorded,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "kantan_agents")
    seen = Seen(ScriptedModel([]), recorded, caplog)
    with OfflineServer([Reply(f"no account for {MAIL}", status=400)]) as server:
        desk = Agent("desk", "Help.", model=server.bundle(), middleware=[Redact()])
        with desk.subscribe(seen.events.append):
            try:
                await desk.run_async("Hello")
            except Exception as error:  # noqa: BLE001 - looked at below
                seen.error = error
    assert getattr(seen.error, "status_code", None) == 400
    assert "no account for [email]" in str(seen.error)
    assert MAIL not in seen.text()


def caught(failure: Callable[[str], None], text: str) -> BaseException:
    try:
        failure(text)
    except BaseException as error:  # noqa: BLE001 - looked at by the test
        return error
    raise AssertionError("it does not fail")


def hiding(value: Any) -> Any:
    from kantan_agents.middleware.redact.values import change_value

    return change_value(value, lambda text, _: text.replace(MAIL, "[email]"))


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
def test_a_redacted_exception_is_caught_like_the_original_and_keeps_its_other_data(
    failure: Callable[[str], None],
) -> None:
    original = caught(failure, MAIL)
    texts = "".join(traceback.format_exception(original))
    copy = redacted_exception(original, hiding)
    assert "".join(traceback.format_exception(copy)) == texts.replace(MAIL, "[email]")
    assert MAIL not in repr((copy, copy.args, vars(copy), getattr(copy, "object", None)))
    assert isinstance(copy, ValueError if isinstance(original, ValidationError) else type(original))
    assert type(copy).__name__ == type(original).__name__
    assert copy.__traceback__ is original.__traceback__
    for name in ("errno", "returncode", "start", "age"):
        assert getattr(copy, name, None) == getattr(original, name, None)
    assert redacted_exception(copy, hiding) is copy
    if copy is not original:
        restored = pickle.loads(pickle.dumps(copy))
        assert isinstance(restored, ValueError if isinstance(original, ValidationError) else type(original))
        assert str(restored) == str(copy)


@attrs.frozen
class FrozenError(Exception):
    mail: str
    number: int


class LockedError(Exception):
    """An exception that refuses changes of its attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


class HookedError(Exception):
    """An exception that keeps a list of its subclasses, each with a code of its own."""

    classes: ClassVar[list[type]] = []

    def __init_subclass__(cls, code: int) -> None:
        cls.classes.append(cls)


@pytest.mark.parametrize(
    "error",
    [FrozenError(MAIL, 4), LockedError(MAIL), HookedError(MAIL)],
    ids=lambda error: type(error).__name__,
)
def test_a_redacted_exception_of_a_class_with_rules_of_its_own_is_caught_like_the_original(
    error: Exception,
) -> None:
    BaseException.__setattr__(error, "__cause__", LookupError(MAIL))

    copy = redacted_exception(error, hiding)

    assert isinstance(copy, type(error))
    assert MAIL not in "".join(traceback.format_exception(copy))
    assert not HookedError.classes
    if isinstance(copy, FrozenError):
        assert copy.number == 4


def test_an_exception_without_a_finding_stays_the_same_object() -> None:
    for failure in FAILURES:
        error = caught(failure, "nothing")
        assert redacted_exception(error, hiding) is error


def test_a_chain_that_leads_back_to_itself_is_redacted() -> None:
    first, second = LookupError(MAIL), ValueError("other")
    first.__context__, second.__cause__ = second, first
    copy = redacted_exception(second, hiding)
    assert copy is second
    assert str(copy.__cause__) == "[email]"
    assert copy.__cause__ is not None
    assert copy.__cause__.__context__ is second


def test_a_long_chain_is_redacted() -> None:
    error: BaseException = LookupError(MAIL)
    for number in range(5_000):
        outer = ValueError(number)
        outer.__context__ = error
        error = outer
    reached: BaseException | None = redacted_exception(error, hiding)
    while reached is not None:
        assert MAIL not in str(reached)
        reached = reached.__context__


# Results


class Hidden:
    def __repr__(self) -> str:
        return f"<{MAIL}>"

    def __str__(self) -> str:
        return "nothing"


class HidingDict(dict[str, Any]):
    def __str__(self) -> str:
        return MAIL


class Row(NamedTuple):
    mail: str


class Customer(BaseModel):
    id: str
    name: str
    data: str


@attrs.frozen
class Checked:
    mail: str = attrs.field(validator=attrs.validators.matches_re(r"[^\[]*"))


RESULTS: list[Any] = [
    MAIL.encode(),
    bytearray(MAIL, "utf-8"),
    b"\xff\n" + MAIL.encode(),
    {"k": [MAIL.encode()]},
    {b"k": {MAIL}},
    frozenset({(MAIL,)}),
    [Hidden()],
    HidingDict(k=1),
    Row(MAIL),
    Customer(id=MAIL, name=MAIL, data=MAIL),
    Checked(MAIL),
    LookupError(MAIL),
    f"data:image/png;base64,iVBORw0KGgo= {MAIL}",
    f"data:;base64,{MAIL}",
    f"data:text/plain;base64,{base64.b64encode(b'x').decode()}\n{MAIL}",
    f"see data:image/png;base64,AAAA and {MAIL}",
    {"password": "hunter2"},
    {"headers": [("authorization", "Token x1")]},
    [["--api-key", "abcdef12"]],
    json.dumps({"db_password": "hunter2", "pin": {"password": 1234567}}),
]
VALUES = (MAIL, "hunter2", "Token x1", "abcdef12", "1234567")


@pytest.mark.parametrize("result", RESULTS, ids=range(len(RESULTS)))
async def test_a_value_in_a_result_of_any_type_is_redacted(result: Any, recorded: Recorded) -> None:
    seen = await see(Redact(), recorded=recorded, tool=lambda: result)
    assert seen.error is None
    for value in VALUES:
        assert value not in seen.text()


def image(url: str) -> list[Any]:
    return [{"role": "user", "content": [{"type": "input_image", "image_url": url, "detail": "auto"}]}]


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{MAIL}",
        f"data:image/png;base64,AAAA {MAIL}",
        f"data:image/png;base64,AAAA\n{MAIL}",
        f"see {MAIL}",
        MAIL,
    ],
)
async def test_a_field_for_media_is_redacted_unless_it_is_an_image(url: str, recorded: Recorded) -> None:
    seen = await see(Redact(), recorded=recorded, steps=[[assistant_message("Hi")]], input=image(url))
    assert MAIL not in seen.text()


@pytest.mark.parametrize(
    "url", ["data:image/png;base64," + "4111111111111111" * 9, "data:application/pdf;name=a.pdf;base64,AA=="]
)
async def test_images_and_files_reach_the_model_unchanged(url: str, recorded: Recorded) -> None:
    seen = await see(Redact(), recorded=recorded, steps=[[assistant_message("Hi")]], input=image(url))
    assert seen.model.calls[0].input[0]["content"][0]["image_url"] == url


async def test_a_link_to_an_image_reaches_the_model_and_is_redacted_in_the_trace(
    recorded: Recorded,
) -> None:
    url = f"https://files.example.com/{MAIL}.png"
    seen = await see(Redact(), recorded=recorded, steps=[[assistant_message("Hi")]], input=image(url))
    assert seen.model.calls[0].input[0]["content"][0]["image_url"] == url
    assert MAIL not in recorded.all()
    assert "https://files.example.com/[email]" in recorded.all()


async def test_identifiers_that_are_texts_are_redacted(recorded: Recorded) -> None:
    given = [{"role": "user", "name": f"Aiko <{MAIL}>", "content": "Hello", "data": {"k": MAIL}}]
    seen = await see(Redact(), recorded=recorded, steps=[[assistant_message("Hi")]], input=given)
    assert MAIL not in seen.text()


async def test_trace_metadata_is_redacted_and_standard_keys_are_kept(recorded: Recorded) -> None:
    class Tagging(Middleware):
        async def run(self, run: Any, call_next: Any) -> None:
            await call_next(run)

        def trace_metadata(self, run: Any) -> Any:
            return {"tag": MAIL}

    seen = await see(
        Redact(),
        Tagging(),
        recorded=recorded,
        steps=[[assistant_message("Hi")]],
        metadata={"customer": MAIL, "deep": {"mails": [MAIL]}, "plan": "pro"},
    )
    assert MAIL not in seen.text()
    assert "'plan': 'pro'" in recorded.all()
    assert "'agent_name': 'desk'" in recorded.all()


async def test_an_error_of_a_middleware_before_redact_is_recorded_redacted(recorded: Recorded) -> None:
    class Failing(Middleware):
        async def run(self, run: Any, call_next: Any) -> None:
            raise OwnTextError(MAIL)

    seen = await see(Failing(), Redact(), recorded=recorded)
    assert isinstance(seen.error, OwnTextError)
    seen.error = None  # it has not passed `Redact`
    assert MAIL not in seen.text()
    assert "nobody has [email]" in seen.text()


async def test_an_unchanged_error_reaches_the_caller_as_the_same_object(recorded: Recorded) -> None:
    error = OwnTextError("nothing")

    def fetch() -> str:
        raise error

    seen = await see(Redact(), ToolErrors("raise"), recorded=recorded, tool=fetch)
    assert seen.error is error


# The property


SIGNS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
WORDS = st.text(SIGNS, min_size=36, max_size=40).filter(
    lambda word: any(map(str.isdigit, word)) and any(map(str.islower, word)) and any(map(str.isupper, word))
)
PLACES: dict[str, Callable[[str], Any]] = {
    "text": lambda secret: f"it is {secret}, really",
    "nested": lambda secret: {"a": [{"b": (secret,)}]},
    "key": lambda secret: {secret: 1},
    "bytes": lambda secret: [b"\x80 " + secret.encode()],
    "set": lambda secret: {secret},
    "repr": lambda secret: [type("Odd", (), {"__repr__": lambda _: secret})()],
    "data URL": lambda secret: f"data:image/png;base64,AAAA;base64,{secret}",
    "json": lambda secret: json.dumps({"a": json.dumps([secret])}),
    "list in a text": lambda secret: repr([{"x": secret}]),
}


@settings(max_examples=40)
@given(
    word=WORDS,
    form=st.sampled_from(
        ["ghp_{}", "sk-{}", "https://me:{}@host/", "password={}", '{{"api_key": "{}"}}', "Bearer {}"]
    ),
    place=st.sampled_from(sorted(PLACES)),
    failure=st.sampled_from([None, *FAILURES]),
    order=st.sampled_from(sorted(MIDDLEWARE)),
)
def test_a_random_secret_in_any_place_never_leaves_a_run(
    word: str, form: str, place: str, failure: Callable[[str], None] | None, order: str
) -> None:
    seen_spans = Recorded()
    set_trace_processors([seen_spans])
    secret = form.format(word)

    def fetch() -> Any:
        if failure is not None:
            failure(secret)
        return PLACES[place](secret)

    middleware = MIDDLEWARE[order]()
    seen = asyncio.run(see(*middleware, recorded=seen_spans, tool=fetch, input=f"My key: {secret}"))
    assert word not in seen.text()


def failing(failure: Callable[[str], None]) -> Callable[[], str]:
    def fetch() -> str:
        failure(MAIL)
        return "never"

    return fetch


def test_no_byte_of_the_database_contains_a_value(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    recorder = SQLiteRecorder(path)
    set_trace_processors([recorder])
    for order in MIDDLEWARE.values():
        for failure in FAILURES:
            asyncio.run(see(*order(), recorded=Recorded(), tool=failing(failure), input=f"I am {MAIL}"))
    assert recorder.force_flush(60)
    recorder.shutdown()
    written = b"".join(found.read_bytes() for found in tmp_path.iterdir())
    assert b"[email]" in written
    assert MAIL.encode() not in written
