"""Nothing that ``Redact`` finds is in the database of durable runs, and redacted runs go on correctly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import RunConfig, SQLiteSession

from kantan_agents import Agent, Durable, Middleware, Next, Run
from kantan_agents.errors import NotStorableError, RedactedContentBlockedError
from kantan_agents.middleware import Approve, Redact
from tests.durable.revival import Case, KilledError, call, opened, revive, stored_bytes

ASKED = "asked@private.example"
FOUND = "found@private.example"
LATER = "later@private.example"
SAID = "said@private.example"
FAILED = "failed@private.example"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"


def _tools(case: Case, *, dies_in: str = "later") -> list[Any]:
    async def find(who: str) -> dict[str, str]:
        """Find."""
        case.effect(f"find {who}")
        return {"mail": FOUND, "key": SECRET}

    async def fail() -> str:
        """Fail."""
        raise ValueError(f"no {FAILED}")

    async def later(to: str) -> str:
        """Do it later."""
        case.effect(f"later {to}")
        if dies_in == "later":
            case.die()
        return f"sent, and {LATER} too"

    return [find, fail, later]


def _redacted(**options: Any) -> Any:
    return lambda case: case.agent(Redact(**options), tools=_tools(case))


_REPLIES = {
    0: [call("find", "c1", who="x"), call("fail", "c2")],
    2: [call("later", "c3", to=f"them, not {SAID}")],
    3: f"Done. {SAID}",
}
_RESTORING = {
    0: [call("find", "c1", who="[email_1]")],
    1: [call("later", "c3", to="[email_2]")],
    2: "Done with [email_1], [email_2] and [email_3].",
}


async def _stream(agent: Agent[Any], case: Case) -> None:
    async with agent.stream(case.input, dict(case.context)) as events:
        async for _ in events:
            pass


CASES = {
    "mask": Case(_redacted(), _REPLIES, input=f"I am {ASKED}"),
    "hash": Case(_redacted(mode="hash", key=b"k"), _REPLIES, input=f"I am {ASKED}"),
    "streamed": Case(_redacted(), _REPLIES, input=f"I am {ASKED}", begin=_stream),
    "inside": Case(
        lambda case: case.agent(Durable(), Redact(), tools=_tools(case)), _REPLIES, input=f"I am {ASKED}"
    ),
}


def _reload(context: dict[str, Any]) -> None:
    context["user"] = "reloaded"


async def _enqueue(agent: Agent[Any], case: Case) -> None:
    await agent.enqueue(case.input, dict(case.context), queue="nobody")


def _asking(case: Case) -> Agent[Any]:
    async def pay(to: str) -> str:
        """Pay."""
        return to

    return case.agent(Approve("pay"), Redact(), tools=[pay])


def _with_session(case: Case) -> Agent[Any]:
    return case.agent(Redact(), Durable(session=_session), tools=_tools(case))


def _session(name: str) -> Any:
    if name not in _SESSIONS:
        _SESSIONS[name] = SQLiteSession(name)
    return _SESSIONS[name]


_SESSIONS: dict[str, SQLiteSession] = {}


async def _go_on_talking(agent: Agent[Any], case: Case) -> None:
    session = _session("s")
    await session.add_items([{"role": "user", "content": f"I was {FOUND}"}])
    await agent.run_async(case.input, session=session)


class _Failing(Middleware):
    """Ends a run with an error that has an address."""

    async def run(self, run: Run, call_next: Next) -> None:
        raise ValueError(f"nobody is {FAILED}")


_PRIVATE = (ASKED, FOUND, LATER, SAID, FAILED, SECRET)

PLAIN = {
    **CASES,
    "stage": Case(lambda case: case.agent(Redact(), Durable(), _Failing()), begin=None),
    "cannot_restore": Case(_redacted(restore=True)),
    "context": Case(_redacted(), context={"user": ASKED}),
    "context_reloaded": Case(
        lambda case: case.agent(Redact(), Durable(reload=_reload), tools=_tools(case)),
        _REPLIES,
        context={"user": ASKED},
    ),
    "blocked_input": Case(lambda case: case.agent(Redact(mode="block")), input=f"I am {ASKED}"),
    "blocked_inside": Case(lambda case: case.agent(Durable(), Redact(mode="block")), input=f"I am {ASKED}"),
    "blocked_result": Case(_redacted(mode="block"), {0: [call("find", "c1", who="x")]}),
    "metadata": Case(
        _redacted(), options={"run_config": RunConfig(trace_metadata={"user": ASKED}, group_id="g")}
    ),
    "queued": Case(_redacted(), input=f"I am {ASKED}", begin=_enqueue, ends=False),
    "queued_items": Case(
        _redacted(mode="hash"),
        input=[{"role": "user", "content": f"I am {ASKED}"}],
        begin=_enqueue,
        ends=False,
    ),
    "waiting": Case(
        _asking,
        {0: [call("pay", "c1", to=SAID)]},
        input=f"I am {ASKED}",
        ends=False,
    ),
    "session": Case(_with_session, _REPLIES, input=f"I am {ASKED}", begin=_go_on_talking),
}
"""Cases in which no value is kept for another process."""
RESTORING = {
    "restore": Case(_redacted(restore=True, keep_in="kept"), _RESTORING, input=f"I am {ASKED}"),
    "restore_streamed": Case(
        _redacted(restore=True, keep_in="kept"), _RESTORING, input=f"I am {ASKED}", begin=_stream
    ),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("redaction")
    revive(folder, PLAIN, keep_events=True)
    yield folder
    for session in _SESSIONS.values():
        session.close()
    _SESSIONS.clear()


@pytest.fixture(scope="module")
def restoring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("restoring")
    revive(folder, RESTORING, keep_events=True)
    return folder


def test_nothing_that_is_redacted_is_in_the_files_of_the_engine(plain: Path) -> None:
    stored = stored_bytes(plain)
    assert [one for one in _PRIVATE if one.encode() in stored] == []
    assert b"[email]" in stored


@pytest.mark.parametrize("name", CASES)
def test_a_redacted_run_goes_on_as_if_it_had_not_been_killed(plain: Path, name: str) -> None:
    case = PLAIN[name]
    mail = "[email]" if name != "hash" else "[email:1662025474abadeb]"
    assert isinstance(case.raised, KilledError)
    assert case.output == f"Done. {mail}"
    assert case.effects == ["find x", f"later them, not {mail}", f"later them, not {mail}"]
    assert case.answers[1].startswith("An error occurred while running the tool. Please try again.")
    text = str(case.requests[1][-1].input)
    assert [one for one in _PRIVATE if one in text] == []


@pytest.mark.usefixtures("plain")
def test_a_session_goes_on_with_what_was_redacted() -> None:
    case = PLAIN["session"]
    assert case.output == "Done. [email]"
    assert case.requests[1][-1].input[0] == {"role": "user", "content": "I was [email]"}


@pytest.mark.usefixtures("plain")
def test_the_error_of_a_run_is_redacted_before_the_engine_has_it() -> None:
    case = PLAIN["stage"]
    assert case.status == "failed"
    assert "nobody is [email]" in (case.error or "")


@pytest.mark.usefixtures("plain")
def test_what_blocks_a_run_is_not_stored_either() -> None:
    for name in ("blocked_input", "blocked_inside", "blocked_result"):
        assert isinstance(PLAIN[name].raised, RedactedContentBlockedError), name


@pytest.mark.usefixtures("plain")
def test_a_value_that_no_other_process_would_have_cannot_be_stored() -> None:
    raised = PLAIN["cannot_restore"].raised
    assert isinstance(raised, NotStorableError)
    assert "give it keep_in=, or restore=False" in str(raised)
    raised = PLAIN["context"].raised
    assert isinstance(raised, NotStorableError)
    assert "context['user'] has something that is redacted; pass Durable(reload=...)" in str(raised)


@pytest.mark.usefixtures("plain")
def test_a_value_of_the_context_that_is_redacted_is_made_again() -> None:
    case = PLAIN["context_reloaded"]
    assert case.output == "Done. [email]"
    assert case.outcome is not None
    assert case.outcome.context["user"] == "reloaded"


@pytest.mark.parametrize("name", RESTORING)
def test_values_that_were_found_before_the_kill_are_put_back_after_it(restoring: Path, name: str) -> None:
    case = RESTORING[name]
    assert case.effects == [f"find {ASKED}", f"later {FOUND}", f"later {FOUND}"]
    assert case.output == "Done with [email_1], [email_2] and [email_3]."
    assert case.outcome is not None
    kept = case.outcome.context["kept"]
    assert {kept["[email_1]"], kept["[email_2]"], kept["[email_3]"]} == {ASKED, FOUND, LATER}


def test_values_are_kept_only_where_the_user_has_chosen(restoring: Path) -> None:
    with opened(f"sqlite:///{restoring / 'runs.sqlite3'}") as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        rows = [str(row) for name in tables for row in connection.execute(f'SELECT * FROM "{name}"')]
    assert rows
    for row in rows:
        # Of the context with the key, and of the steps in which they were found.
        shown = re.sub(r'"kept\W+\{[^}]*\}', "", row.replace("\\", ""))
        assert [one for one in _PRIVATE if one in shown] == [], row
