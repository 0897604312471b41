"""A search that is started again: after Ctrl-C, a kill, with a higher budget, with a damaged journal."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from kantan_agents import record_traces
from kantan_agents.errors import WorkingFolderError
from kantan_agents.lab import Cohort, improve_async
from kantan_agents.testing import Reply
from tests.lab.improve.commands import arguments, start, summary_of, write_module
from tests.lab.improve.shops import (
    OLD,
    POLITE,
    REFLECTS,
    Shop,
    journal_of,
    last_text,
    scripted,
    shop,
    shop_after_search,
)
from tests.programs import Preloaded

TEXTS = (f"{OLD} Be brief.", f"{OLD} Be kind.", POLITE)
CONCURRENCY = 4


def by_question(question: str, _number: int) -> dict[str, str]:
    """Propose as a model that depends on nothing but the question."""
    number = min(question.count("was refused") + sum(text in question for text in TEXTS[:2]), 2)
    place = sum(question.encode()) % 2
    return {"changes": f"change {place}", "prompt": TEXTS[2] if number else TEXTS[place]}


class Interrupting:
    """Replies as a shop does; from one request on, only after a minute, until ``end`` is called."""

    def __init__(self, made: Shop, at: int) -> None:
        self.reached = threading.Event()
        self._reply = made.reply
        self._at, self._count = at, 0

    def __call__(self, request: Any) -> Any:
        self._count += 1
        if self._count >= self._at:
            self.reached.set()
            return Reply("late", delay=60)
        return self._reply(request)

    def end(self) -> None:
        self._at = 10**9


def copied(made: Shop, folder: Path) -> Path:
    """Return a copy of the database in a new folder."""
    folder.mkdir()
    db = folder / "traces.sqlite3"
    with closing(sqlite3.connect(made.path)) as source, closing(sqlite3.connect(db)) as target:
        source.backup(target)
    return db


def finished(preloaded: Preloaded, made: Shop, folder: Path, command: list[str]) -> None:
    process = start(preloaded, made, folder, command)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err


def searching(made: Shop, folder: Path) -> list[str]:
    """Return the command that searches in a folder, in a copy of the database."""
    db = copied(made, folder)
    return arguments(write_module(folder), db, "--concurrency", str(CONCURRENCY))


@pytest.fixture(scope="module")
def whole(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """The summary of a search that nothing interrupts, and how many requests it sends."""
    tmp_path = tmp_path_factory.mktemp("whole")
    with shop(tmp_path, propose=by_question) as made:
        folder = tmp_path / "search"
        finished(preloaded, made, folder, searching(made, folder))
        return summary_of(folder / "support-improve"), len(made.server.requests)


@pytest.mark.parametrize(("how", "at"), [(signal.SIGKILL, 7), (signal.SIGKILL, 95), (signal.SIGINT, 45)])
def test_an_interrupted_search_ends_as_one_that_was_not(
    preloaded: Preloaded, tmp_path: Path, whole: tuple[dict[str, Any], int], how: int, at: int
) -> None:
    summary, requests = whole
    with shop(tmp_path, propose=by_question) as made:
        folder = tmp_path / "interrupted"
        command = searching(made, folder)
        made.respond = interrupting = Interrupting(made, at)
        process = start(preloaded, made, folder, command)
        assert interrupting.reached.wait(60)
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
        assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
        if how == signal.SIGINT:
            assert "interrupted: what is finished is kept" in err
        assert not (folder / "support-improve" / "summary.json").exists()
        interrupting.end()
        finished(preloaded, made, folder, command)
        sent = len(made.server.requests)
    assert summary_of(folder / "support-improve") == summary
    assert summary["new"]["text"] == POLITE
    # Only the runs that were on their way are made again, of two requests each.
    assert requests <= sent <= requests + 2 * CONCURRENCY


def test_the_same_seed_makes_the_same_search(tmp_path: Path) -> None:
    with shop(tmp_path, propose=by_question) as made:
        found, questions = [], []
        for number, seed in enumerate((5, 5, 6)):
            made.server.requests.clear()
            shop_copy = copied(made, tmp_path / str(number))
            own, made.path = made.path, shop_copy
            found.append(made.improve(seed=seed, out=tmp_path / str(number) / "out"))
            made.path = own
            questions.append([last_text(one) for one in made.requests_with(REFLECTS)])
        summaries = [summary_of(one.folder) for one in found]
    assert summaries[0] == summaries[1]
    assert questions[0] == questions[1]
    assert questions[0] != questions[2], "another seed draws other samples"
    assert found[0].files["lineage"].read_bytes() == found[1].files["lineage"].read_bytes()


def test_a_finished_search_asks_nothing_again(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        first = made.improve()
        made.server.requests.clear()
        second = made.improve()
        assert made.server.requests == []
    assert second == first


def test_more_rounds_and_a_higher_budget_go_on_where_it_ended(tmp_path: Path) -> None:
    with shop(tmp_path, propose=scripted(f"{OLD} Be brief.", POLITE)) as made:
        first = made.improve(rounds=1, max_tokens=50_000)
        asked = made.asked
        made.server.requests.clear()
        second = made.improve(rounds=3, max_tokens=90_000)
        brief = made.requests_with("Be brief")
    assert (first.new, asked) == (None, 1)
    assert second.new is not None
    assert second.tokens > first.tokens
    assert brief == [], "it was paid for before"


def test_new_runs_are_no_part_of_a_search_that_has_begun(tmp_path: Path) -> None:
    with shop(tmp_path, propose=scripted(f"{OLD} Be brief.", POLITE)) as made:
        first = made.improve(rounds=1)
        for number in range(100, 105):
            made.agent().run(f"where is order {number}", {"customer": "New"})
        second = made.improve(rounds=3)
    assert second.cases == first.cases
    assert second.new is not None


def test_a_torn_last_line_is_dropped_and_paid_for_again(tmp_path: Path) -> None:
    with shop_after_search(tmp_path) as (made, first):
        journal = first.folder / "journal.jsonl"
        # As if it was killed while it wrote a score.
        lines = journal.read_bytes().splitlines(keepends=True)
        cut = next(n for n, line in enumerate(lines) if b'"rated"' in line and n > 5)
        journal.write_bytes(b"".join(lines[:cut]) + lines[cut][:40])
        for name in ("summary.json", "lineage.svg", "prompt.diff", "new-version.md"):
            (first.folder / name).unlink()
        second = made.improve()
    assert second == first
    assert all(journal_of(second))


DAMAGES: list[tuple[Callable[[list[bytes]], list[bytes]], str]] = [
    (lambda _lines: [b'{"format": "other"}\n'], "not a journal of this version"),
    (lambda lines: [lines[0], b"[1]\n"], "line 2 is damaged"),
    (lambda lines: [lines[0], b"{]\n"], "line 2 is not JSON"),
    (lambda lines: [lines[0], b'{"rated": {}, "version": "x"}\n'], "line 2 is damaged"),
    (
        lambda lines: [json.dumps({**json.loads(lines[0]), "cases": 1}).encode() + b"\n"],
        "line 1 is damaged",
    ),
]


def test_a_damaged_journal_is_one_clear_error(tmp_path: Path) -> None:
    with shop_after_search(tmp_path) as (made, found):
        journal = found.folder / "journal.jsonl"
        whole = journal.read_bytes().splitlines(keepends=True)
        for damage, reason in DAMAGES:
            journal.write_bytes(b"".join(damage(whole)))
            with pytest.raises(WorkingFolderError, match=reason):
                made.improve()
        assert made.server.requests == []


def test_a_folder_of_another_search_is_refused(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [{"seed": 1}, {"minibatch": 2}, {"max_length": 100}, {"new_version": "x"}]
    with shop_after_search(tmp_path) as (made, _):
        for options in others:
            with pytest.raises(WorkingFolderError, match="other arguments") as raised:
                made.improve(**options)
            assert raised.value.code == "E123"


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with shop(tmp_path) as made:
        with pytest.raises(WorkingFolderError, match="is not empty and has no journal"):
            made.improve(out=folder)
        assert made.server.requests == []
    assert [one.name for one in folder.iterdir()] == ["notes.txt"]


def test_a_result_file_that_somebody_has_changed_is_not_overwritten(tmp_path: Path) -> None:
    with shop_after_search(tmp_path) as (made, found):
        file = found.files["prompt"]
        file.write_text("changed by hand")
        with pytest.raises(WorkingFolderError, match="was not written by this search"):
            made.improve()
    assert file.read_text() == "changed by hand"


def test_a_recorded_run_that_was_deleted_meanwhile_is_named(tmp_path: Path) -> None:
    with shop(tmp_path, propose=scripted(f"{OLD} Be brief.")) as made:
        found = made.improve(rounds=1)
        case_id, trace_id = next(iter(journal_of(found)[0]["cases"].items()))
        with closing(sqlite3.connect(made.path)) as connection:
            connection.execute("DELETE FROM traces WHERE id = ?", (trace_id,))
            connection.commit()
        with pytest.raises(WorkingFolderError, match=f"1 recorded runs.*{case_id}"):
            made.improve(rounds=2)


def test_two_processes_cannot_use_one_folder(tmp_path: Path) -> None:
    import fcntl

    with shop_after_search(tmp_path) as (made, found), (found.folder / ".lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(WorkingFolderError, match="another process uses it"):
            made.improve()


def test_a_journal_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    folder = tmp_path / "support-improve"
    folder.mkdir()
    (folder / "journal.jsonl").symlink_to(target)
    with shop(tmp_path) as made, pytest.raises(WorkingFolderError):
        made.improve()
    assert target.read_text() == ""


def test_the_new_version_keeps_its_name_when_it_is_in_use(tmp_path: Path) -> None:
    with shop_after_search(tmp_path) as (made, first):
        assert first.new is not None
        recorder = record_traces(made.path)
        made.agent().clone(instructions=first.new).run("Where is order 3", {"customer": "Aiko"})
        recorder.shutdown()
        assert made.improve() == first


@pytest.mark.parametrize("how", ["task.cancel", "asyncio.wait_for", "anyio"])
def test_a_cancelled_search_asks_nothing_more_and_gives_the_folder_back(tmp_path: Path, how: str) -> None:
    asked = threading.Event()

    async def go(made: Shop) -> int:
        options: dict[str, Any] = {"judge": made.judge(), "out": tmp_path / "out", "rounds": 3}
        searching = improve_async(made.agent(), made.store, **options)
        if how == "anyio":
            async with anyio.create_task_group() as group:
                group.start_soon(awaited, searching)
                await asyncio.to_thread(asked.wait)
                group.cancel_scope.cancel()
        else:
            task = asyncio.create_task(searching)
            await asyncio.to_thread(asked.wait)
            if how == "task.cancel":
                task.cancel()
            with pytest.raises((asyncio.CancelledError, asyncio.TimeoutError)):
                await (asyncio.wait_for(task, 0.001) if how == "asyncio.wait_for" else task)
        sent = len(made.server.requests)
        await asyncio.sleep(0.5)
        assert len(made.server.requests) == sent
        return sent

    async def awaited(searching: Any) -> None:
        await searching

    with shop(tmp_path) as made:
        reply = made.respond

        def slowly(request: Any) -> Any:
            if len(made.server.requests) > 20:
                asked.set()
            return reply(request)

        made.respond = slowly
        assert asyncio.run(go(made)) > 20
        found = made.improve(out=tmp_path / "out", reflection_model=None)
    assert found.new is not None
    lines = journal_of(found)
    scored = [(line["version"], line["rated"]["case_id"]) for line in lines if "rated" in line]
    assert len(scored) == len(set(scored)), "nothing is paid for twice"


def test_a_search_with_structured_outputs_asks_nothing_again(tmp_path: Path) -> None:
    class Answer(BaseModel):
        text: str
        kind: str
        alpha: int

    def answers(request: Any) -> Any:
        polite = "polite" in str(request.system_instructions)
        return {"text": "Dear customer" if polite else "no", "kind": "status", "alpha": 1}

    def make(made: Shop) -> Any:
        return made.agent(output_type=Answer)

    with shop(tmp_path, make=make, answers=answers) as made:
        first = made.improve(agent=make(made))
        made.server.requests.clear()
        second = made.improve(agent=make(made))
        assert made.server.requests == []
    assert second == first
    assert first.new is not None


@pytest.mark.parametrize("content", [b"precious, without a line break", b'{"mine": 1}', b"one\ntwo"])
@pytest.mark.parametrize("linked", [False, True], ids=["in the folder", "behind a link"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, content: bytes, linked: bool) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    place = tmp_path / "precious.txt" if linked else folder / "journal.jsonl"
    place.write_bytes(content)
    if linked:
        (folder / "journal.jsonl").symlink_to(place)
    with shop(tmp_path) as made, pytest.raises(WorkingFolderError, match="E123"):
        made.improve(out=folder)
    assert place.read_bytes() == content


def test_a_lock_that_cannot_be_opened_is_an_error_with_a_code(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".lock").symlink_to(tmp_path / "elsewhere")
    with shop(tmp_path) as made, pytest.raises(WorkingFolderError, match="E123"):
        made.improve(out=folder)
    assert not (tmp_path / "elsewhere").exists()


def test_what_was_left_out_is_known_after_a_resume(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        recorder = record_traces(made.path)
        made.agent("Another.", "v0").run("where is order 77", {"customer": "Aiko"})
        recorder.force_flush()
        cohort = Cohort.select(made.store, agent="support")
        first = made.improve(cohort=cohort)
        assert len(first.skipped) == 1
        assert made.improve(cohort=cohort) == first
        recorder.shutdown()
