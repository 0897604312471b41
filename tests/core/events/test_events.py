"""Events are frozen, convert to JSON and match their schema."""

from __future__ import annotations

import dataclasses
import json
import typing
from datetime import date, datetime, timezone
from typing import Any, Literal

import attrs
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kantan_agents import Agent, Event, Pipeline
from kantan_agents.core.events import EVENT_KINDS, RunFinished, TextDelta, event_schema
from kantan_agents.testing import OfflineServer, ScriptedModel
from kantan_agents.testing.strategies import json_values
from tests.core.events.event_checks import SCHEMA, check_json
from tests.core.events.watched_runs import Playing


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if hint is Any:
        return json_values()
    if hint is datetime:
        return st.datetimes(timezones=st.just(timezone.utc))
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if typing.get_origin(hint) is Literal:
        return st.sampled_from(typing.get_args(hint))
    if typing.get_origin(hint) is dict:
        return st.dictionaries(st.text(), st.integers())
    if typing.get_args(hint):
        return st.one_of([_values(option) for option in typing.get_args(hint)])
    return st.from_type(hint)


def _built(kind: type[Event]) -> st.SearchStrategy[Event]:
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{field.name: _values(hints[field.name]) for field in attrs.fields(kind)})


events = st.sampled_from(EVENT_KINDS).flatmap(_built)


@given(events)
def test_every_event_matches_the_schema_and_survives_json(event: Event) -> None:
    check_json(event)
    assert len(event.to_json().splitlines()) == 1
    assert next(iter(json.loads(event.to_json()))) == "type"


@given(events)
def test_an_event_cannot_be_changed(event: Event) -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.sequence = 5  # type: ignore[misc]
    assert attrs.evolve(event) == event
    assert hash(type(event)) == hash(event.__class__)


def test_the_schema_is_valid_and_rejects_values_that_are_not_events() -> None:
    schema = event_schema()
    jsonschema_rs.meta.validate(schema)
    assert [entry["properties"]["type"]["const"] for entry in schema["oneOf"]] == [
        kind.type for kind in EVENT_KINDS
    ]
    assert len({kind.type for kind in EVENT_KINDS}) == len(EVENT_KINDS)
    assert json.loads(json.dumps(schema)) == schema
    good = json.loads(_delta("x").to_json())
    for wrong in (
        {**good, "type": "other"},
        {**good, "more": 1},
        {**good, "sequence": "1"},
        {name: value for name, value in good.items() if name != "text"},
    ):
        with pytest.raises(jsonschema_rs.ValidationError):
            SCHEMA.validate(wrong)


def _delta(text: str) -> TextDelta:
    now = datetime.now(timezone.utc)
    return TextDelta(run_id="r", parent_run_id=None, agent="a", sequence=1, time=now, call_id="m", text=text)


@pytest.mark.parametrize("text", ["\ud83d", "a\u2028b", "a\x85b", "a\nb", "日本語", "🙂", "\x00", '"'])
def test_any_text_can_be_sent_as_one_line(text: str) -> None:
    line = _delta(text).to_json()
    assert json.loads(line.encode())["text"] == text
    assert len(line.splitlines()) == 1


def test_readable_text_stays_readable() -> None:
    assert "日本語 🙂" in _delta("日本語 🙂").to_json()


class Answer(BaseModel):
    day: date


class Empty(BaseModel):
    pass


@dataclasses.dataclass
class Plain:
    day: date
    inner: list[Answer]


@attrs.frozen
class Frozen:
    day: date


_DAY = date(2026, 1, 2)
_CYCLE: list[Any] = []
_CYCLE.append(_CYCLE)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("text", "text"),
        (None, None),
        (Answer(day=_DAY), {"day": "2026-01-02"}),
        (Empty(), {}),
        ([Answer(day=_DAY)], [{"day": "2026-01-02"}]),
        (Plain(_DAY, [Answer(day=_DAY)]), {"day": "2026-01-02", "inner": [{"day": "2026-01-02"}]}),
        (Frozen(_DAY), {"day": "2026-01-02"}),
        ({"x": float("nan"), 1: {2, 3}}, {"x": None, "1": [2, 3]}),
        (b"\xff", "_w=="),
        (_CYCLE, "[[...]]"),
    ],
)
async def test_any_output_is_emitted_as_json_data(output: Any, expected: Any) -> None:
    async def answer(run: Any, call_next: Any) -> None:
        run.result = output

    received: list[Event] = []
    agent = Agent("a", "x", pipeline=Pipeline([answer]))
    with agent.subscribe(received.append):
        await agent.run_async("hi")
    (finished,) = [event for event in received if isinstance(event, RunFinished)]
    assert finished.output == expected
    check_json(finished)


async def test_usage_and_output_of_a_real_client_are_emitted() -> None:
    received: list[Event] = []
    with OfflineServer(["Paris."]) as server:
        agent = Agent("a", "x", model=server.bundle("some-model"))
        with agent.subscribe(received.append):
            await agent.run_async("hi")
    by_type = {event.type: event for event in received}
    usage = {"requests": 1, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage["requests_without_usage"] = 0
    finished = by_type["model_call_finished"].to_dict()
    assert (finished["model"], finished["usage"], finished["outcome"]) == ("some-model", usage, "finished")
    ended = by_type["run_finished"].to_dict()
    assert (ended["output"], ended["usage"], ended["waits_for_approval"]) == ("Paris.", usage, False)
    assert by_type["run_started"].to_dict()["trace_id"] is None or isinstance(
        by_type["run_started"].to_dict()["trace_id"], str
    )


async def test_a_stored_output_is_emitted_with_its_key() -> None:
    received: list[Event] = []
    with OfflineServer([{"day": "2026-01-02"}]) as server:
        agent = Agent("a", "x", model=server.bundle(), output_type=Answer, output_dest="answer")
        with agent.subscribe(received.append):
            await agent.run_async("hi")
    assert [event.to_dict()["key"] for event in received if event.type == "output_stored"] == ["answer"]


async def test_without_handlers_no_events_are_created() -> None:
    kept: list[Any] = []

    async def look(run: Any, call_next: Any) -> None:
        kept.append(run.events)
        await call_next(run)

    await Agent("a", "x", model=Playing("a", []), middleware=[look]).run_async("hi")
    assert kept == [None]


async def test_an_error_of_other_code_has_no_e_code() -> None:
    class NotFoundError(Exception):
        code = 404

    events: list[Any] = []
    agent = Agent("a", "x", model=ScriptedModel([NotFoundError("gone")]))
    agent.subscribe(events.append)
    with pytest.raises(NotFoundError):
        await agent.run_async("hi")
    assert (events[-1].type, events[-1].code) == ("run_failed", None)
    check_json(events[-1])
