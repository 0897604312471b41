"""A session gets each item once, wherever the process is killed, and is found by another process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agents import SQLiteSession

from kantan_agents import Agent, Durable
from kantan_agents.durable.session import DurableSession
from kantan_agents.errors import NotStorableError
from tests.durable.revival import Case, KilledError, call, revive

_REPLIES = {0: [call("look", "c1")], 1: [call("look", "c2")], 2: "Done."}
_SESSIONS: dict[str, Killing] = {}
_UNKNOWN: list[SQLiteSession] = []


class Killing(SQLiteSession):
    """A session whose process is killed before or after one of its writes.

    Args:
        case: The case.
        kill: For example ``"before 2"``, the second write.
    """

    def __init__(self, case: Case, kill: str = "") -> None:
        super().__init__(case.name)
        self.case = case
        self.kill = kill
        self.writes = 0

    def _dies(self, when: str) -> None:
        if f"{when} {self.writes}" == self.kill:
            self.case.die()

    async def add_items(self, items: list[Any]) -> None:
        """Add items."""
        self.writes += 1
        self._dies("before")
        await super().add_items(items)
        self._dies("after")


def _agent(case: Case, kill: str = "", before: Any = ()) -> Agent[Any]:
    async def look() -> str:
        """Look."""
        case.effect("look")
        return "saw"

    def session(name: str) -> Any:
        assert name == case.name
        return _SESSIONS[name]

    if case.is_first:
        _SESSIONS[case.name] = Killing(case, kill)
    return case.agent(Durable(session=session), tools=[look])


async def _talk(agent: Agent[Any], case: Case) -> None:
    session = _SESSIONS[case.name]
    if case.context:
        await SQLiteSession.add_items(session, [{"role": "user", "content": "Go."}] * case.context["said"])
    await agent.run_async(case.input, session=session)


def _unknown() -> SQLiteSession:
    """Return a session that the agent's ``Durable`` cannot open."""
    session = SQLiteSession("x")
    _UNKNOWN.append(session)
    return session


def _case(kill: str, **context: Any) -> Case:
    return Case(lambda case: _agent(case, kill), _REPLIES, begin=_talk, context=context)


KILLED = {
    f"{when}_{number}": _case(f"{when} {number}") for number in (1, 2, 3) for when in ("before", "after")
}
REPEATED = {
    f"{when}_{number}_said_{said}": _case(f"{when} {number}", said=said)
    for said in (1, 2)
    for number in (1, 2)
    for when in ("before", "after")
}
CASES = {
    **KILLED,
    **REPEATED,
    "not_opened": Case(
        lambda case: case.agent(),
        begin=lambda agent, case: agent.run_async("Go.", session=_unknown()),
    ),
    "not_opened_later": Case(
        lambda case: case.agent(),
        begin=lambda agent, case: agent.enqueue("Go.", queue="q", session=_unknown()),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    revive(tmp_path_factory.mktemp("sessions"), CASES)
    yield
    for session in (*_SESSIONS.values(), *_UNKNOWN):
        session.close()


def _items(case: Case) -> list[Any]:
    items: list[Any] = asyncio.run(_SESSIONS[case.name].get_items())
    return [item.get("content") if item.get("role") == "user" else item["type"] for item in items]


_TURNS = ["function_call", "function_call_output", "function_call", "function_call_output", "message"]


@pytest.mark.parametrize("name", KILLED)
def test_each_item_is_there_once_whichever_write_the_process_is_killed_at(name: str) -> None:
    case = CASES[name]
    assert isinstance(case.raised, KilledError)
    assert case.output == "Done."
    assert case.effects == ["look", "look"]
    assert _items(case) == ["Go.", *_TURNS]


@pytest.mark.parametrize("name", REPEATED)
def test_items_that_the_session_ended_with_before_are_added_again_once(name: str) -> None:
    case = CASES[name]
    assert isinstance(case.raised, KilledError)
    assert case.output == "Done."
    assert _items(case) == ["Go."] * (case.context["said"] + 1) + _TURNS


@pytest.mark.parametrize("name", ["not_opened", "not_opened_later"])
def test_a_session_that_no_process_could_open_is_refused_at_the_beginning(name: str) -> None:
    raised = CASES[name].raised
    assert isinstance(raised, NotStorableError)
    assert "the session cannot be opened by another process; pass Durable(session=...)" in str(raised)
    assert CASES[name].requests[0] == []


class _Journal:
    """The steps of a run, in memory."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.stored = stored
        self.earlier = dict(stored)

    def known(self, step: str) -> Any:
        return self.earlier.get(step)

    def was_begun(self, step: str) -> bool:
        return step in self.earlier

    async def start(self, step: str) -> None:
        self.stored.setdefault(step, None)

    async def keep(self, step: str, body: Any) -> Any:
        self.stored[step] = body
        return body


class _Popping(SQLiteSession):
    """A session whose process is killed before or after it has removed an item."""

    when = ""

    async def pop_item(self) -> Any:
        """Remove the last item."""
        if self.when == "before":
            raise KilledError
        item = await super().pop_item()
        if self.when == "after":
            raise KilledError
        return item


@pytest.mark.parametrize("when", ["before", "after"])
async def test_one_item_is_removed_although_the_process_is_killed_and_all_are_the_same(when: str) -> None:
    stored: dict[str, Any] = {}
    session = _Popping("popping")
    same: Any = {"role": "user", "content": "Go."}
    await session.add_items([same, same, same])
    session.when = when
    with pytest.raises(KilledError):
        await DurableSession(session, _Journal(stored)).pop_item()  # type: ignore[arg-type]
    session.when = ""
    for _ in range(2):
        assert await DurableSession(session, _Journal(stored)).pop_item() == same  # type: ignore[arg-type]
        assert await session.get_items() == [same, same]
    session.close()


async def test_clearing_and_reading_happen_once() -> None:
    stored: dict[str, Any] = {}
    session = SQLiteSession("cleared")
    await session.add_items([{"role": "user", "content": "Go."}])
    durable = DurableSession(session, _Journal(stored))  # type: ignore[arg-type]
    read = await durable.get_items()
    await durable.clear_session()
    await session.add_items([{"role": "user", "content": "Later."}])
    again = DurableSession(session, _Journal(stored))  # type: ignore[arg-type]
    assert await again.get_items() == read
    await again.clear_session()
    assert await session.get_items() == [{"role": "user", "content": "Later."}]
    assert again.session_id == "cleared"
    session.close()
