"""Files of recordings: stable, read by later versions, and refused with a reason if they are not whole."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import set_trace_processors
from hypothesis import given
from hypothesis import strategies as st
from kantan_llm.tracing import SQLiteTracer

from kantan_agents import Agent, Recording, TraceStore, replay, replay_async
from kantan_agents.errors import (
    IncompleteRecordError,
    KantanAgentsError,
    NotReplayableError,
    RecordingFileError,
)
from kantan_agents.middleware import Deadline
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing import ScriptedToolCall as Call
from kantan_agents.testing.properties import event, expect_events
from tests.lab.replay.keep_recordings import FOLDER, LARGE, STREAMED
from tests.lab.replay.kinds_of_runs import KINDS, scripted, tool
from tests.lab.replay.taping import Case, Tapes, hashes
from tests.programs import Preloaded

KEPT = sorted(FOLDER.glob("*.json"))
TOOLS = FOLDER / "tools.json"


def test_a_recording_of_each_kind_is_kept() -> None:
    expected = {f"{kind}.json" for kind in KINDS if kind not in LARGE}
    assert {path.name for path in KEPT} == expected | {f"{kind}.streamed.json" for kind in STREAMED}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_recording_is_read_replayed_and_written_unchanged(path: Path, tmp_path: Path) -> None:
    recording = Recording.load(path)
    assert recording.root.is_streamed == path.stem.endswith(".streamed")
    assert recording.root.is_complete
    replay(path, KINDS[path.stem.removesuffix(".streamed")](False).agent)
    recording.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    assert os.name == "nt" or (tmp_path / "again.json").stat().st_mode & 0o777 == 0o600


async def test_a_saved_recording_is_the_same_recording(tapes: Tapes, tmp_path: Path) -> None:
    for kind in ("delegation", "kinds_of_results", "refused_arguments"):
        await tapes.run(KINDS[kind](True))
        recording = tapes.newest()
        recording.save(tmp_path / "one.json")
        recording.save(tmp_path / "two.json")
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
        loaded = Recording.load(tmp_path / "one.json")
        loaded.save(tmp_path / "two.json")
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert {name for name in os.listdir(tmp_path) if name.endswith("json")} == {"one.json", "two.json"}  # noqa: PTH208


@pytest.mark.parametrize("value", [False, 0, 0.0, "", [], {}, None, "half \ud83d", "日本語\n\t"], ids=repr)
async def test_empty_and_odd_values_survive_a_file(tapes: Tapes, tmp_path: Path, value: Any) -> None:
    def agent(live: bool) -> Agent[Any]:
        def give() -> Any:
            """Give a value."""
            return value

        model = scripted(live, Call("give", {}))
        return Agent("a", "Hi", model=model, tools=[give], tool_use_behavior="stop_on_first_tool")

    await tapes.run(Case(agent(live=True)))
    recording = tapes.newest()
    recording.save(tmp_path / "recording.json")
    loaded = Recording.load(tmp_path / "recording.json")
    assert loaded.root.output == recording.root.output
    assert loaded.root.tool_calls[0].result == recording.root.tool_calls[0].result == value
    assert (await replay_async(loaded, agent(live=False))).output == recording.root.output


BAD = {
    "no file": None,
    "empty": "",
    "not JSON": "{",
    "deep": "[" * 100_000,
    "foreign": '{"a": 1}',
    "a list": "[1]",
    "no version": '{"format": "kantan_agents recording"}',
    "later": '{"format": "kantan_agents recording", "version": 2}',
    "no runs": json.dumps(
        {"format": "kantan_agents recording", "version": 1, "trace_id": "t", "runs": [], "contents": []}
    ),
    "nothing in it": '{"format": "kantan_agents recording", "version": 1}',
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_not_a_recording_is_refused(tmp_path: Path, name: str) -> None:
    path, text = tmp_path / "file.json", BAD[name]
    if text is not None:
        path.write_text(text)
    with pytest.raises(RecordingFileError) as raised:
        Recording.load(path)
    assert raised.value.code == "E91"
    assert raised.value.path == str(path)
    assert "\n" not in str(raised.value)


def test_a_file_of_a_later_version_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(str(BAD["later"]))
    with pytest.raises(RecordingFileError, match="its version is 2, and this library reads up to 1; upgrade"):
        Recording.load(path)
    data = json.loads(TOOLS.read_text())
    data["runs"][0]["version"] = 99
    with pytest.raises(RecordingFileError, match=r"its format is 99, .*upgrade kantan_agents"):
        Recording.from_dict(data)


def test_binary_files_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00SQLite")
    for path in (tmp_path / "binary", tmp_path):
        with pytest.raises(RecordingFileError):
            Recording.load(path)
        with pytest.raises(RecordingFileError):
            replay(path, Agent("a", "Hi"))


def test_a_recording_that_cannot_be_written(tmp_path: Path) -> None:
    recording = Recording.load(TOOLS)
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "nowhere" / "file.json", tmp_path / "folder"):
        with pytest.raises(RecordingFileError, match="E91"):
            recording.save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Return each container of JSON data with each of its keys."""
    if isinstance(data, dict):
        own: list[tuple[Any, Any]] = [(data, key) for key in data]
    else:
        own = [(data, key) for key in range(len(data))] if isinstance(data, list) else []
    return [*own, *(inner for container, key in own for inner in _places(container[key]))]


@expect_events("refused", "read")
@given(st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    """A value is taken away or replaced: reading says that it is damaged, or all of it can be used."""
    damaged = copy.deepcopy(json.loads(TOOLS.read_text()))
    places = _places(damaged)
    container, key = places[data.draw(st.integers(0, len(places) - 1))]
    change: Any = data.draw(st.sampled_from(["remove", None, 7, -1, "text", [], {}, [[]], {"a": 1}]))
    if change == "remove":
        del container[key]
    else:
        container[key] = change
    try:
        recording = Recording.from_dict(damaged)
    except RecordingFileError:
        event("refused")
        return
    event("read")
    assert recording.to_dict()["runs"][0]["agent"] == recording.root.agent
    assert len(hashes(recording)[0]) == len(recording.root.model_calls)


# --- records that are not complete --------------------------------------------------------------------


async def test_a_run_without_recorded_requests(tmp_path: Path) -> None:
    tapes = Tapes(tmp_path, record_requests=False)
    await tapes.run(KINDS["tools"](True))
    with pytest.raises(IncompleteRecordError, match="E90"):
        tapes.newest()
    tapes.recorder.shutdown()


async def test_a_database_of_another_tracer(tmp_path: Path) -> None:
    tracer: Any = SQLiteTracer(str(tmp_path / "old.sqlite3"))
    set_trace_processors([tracer])
    await Agent[Any]("a", "Hi", model=ScriptedModel(["Yes"])).run_async("q")
    set_trace_processors([])
    tracer.shutdown()
    store = TraceStore(tmp_path / "old.sqlite3")
    with pytest.raises(IncompleteRecordError, match="E90"):
        Recording.from_trace(store, store.traces()[0].trace_id)


def test_an_unknown_trace(tmp_path: Path) -> None:
    tapes = Tapes(tmp_path)
    tapes.recorder.force_flush()
    with pytest.raises(KantanAgentsError) as raised:
        Recording.from_trace(tapes.store, "trace_of_nothing")
    assert raised.value.code == "E61"
    tapes.recorder.shutdown()


KILLED = """
import os, signal, sys
from kantan_agents import Agent, record_traces
from kantan_agents.testing import ScriptedModel, ScriptedToolCall

recorder = record_traces(sys.argv[1])
Agent("a", "Hi", model=ScriptedModel(["Yes"])).run("whole")

def die() -> str:
    "End the process."
    recorder.force_flush()
    os.kill(os.getpid(), signal.SIGKILL)

Agent("a", "Hi", model=ScriptedModel([ScriptedToolCall("die", {})]), tools=[die]).run("cut")
"""


def test_a_run_whose_process_was_killed(tmp_path: Path, preloaded: Preloaded) -> None:
    finished = preloaded.run(["-c", KILLED, str(tmp_path / "t.sqlite3")], env={**os.environ})
    assert finished.returncode == -9
    store = TraceStore(tmp_path / "t.sqlite3")
    complete, refused = [], []
    for trace in store.traces():
        try:
            complete.append(Recording.from_trace(store, trace.trace_id).root.input)
        except IncompleteRecordError as error:
            refused.append(error.code)
    assert (complete, refused) == (["whole"], ["E90"])


# --- runs that cannot be replayed ---------------------------------------------------------------------


class Runner:
    """A custom runner."""

    @classmethod
    async def run(cls, *arguments: Any, **options: Any) -> Any:
        return await __import__("agents").Runner.run(*arguments, **options)


def test_an_agent_with_a_runner_of_its_own() -> None:
    agent: Agent[Any] = KINDS["plain"](False).agent
    agent = Agent("a", "Hi", model=ScriptedModel([]), runner=Runner)
    with pytest.raises(NotReplayableError, match=r"E93.*has a runner of its own"):
        replay(FOLDER / "plain.json", agent)


async def test_a_stream_that_its_reader_has_left(tapes: Tapes) -> None:
    agent = Agent[Any]("a", "Hi", model=scripted(True, Call("t1", {}), "Yes"), tools=[tool("t1")])
    async with agent.stream("q") as stream:
        async for event in stream:
            if event.type == "tool_call_finished":
                break
    with pytest.raises(NotReplayableError, match=r"E93.*moment that cannot be repeated"):
        await replay_async(tapes.newest(), agent)


async def test_runs_that_were_cut_off(tapes: Tapes) -> None:
    async def slow() -> str:
        """Take long."""
        started.set()
        await anyio.sleep_forever()
        return "late"

    def agent(*middleware: Any) -> Agent[Any]:
        return Agent("a", "Hi", model=scripted(True, Call("slow", {})), tools=[slow], middleware=middleware)

    started = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(tapes.run, Case(agent()))
        await started.wait()
        group.cancel_scope.cancel()
    with pytest.raises(NotReplayableError, match=r"E93.*the run of 'a' was cancelled, at a moment"):
        await replay_async(tapes.newest(), agent())
    await tapes.run(Case(agent(Deadline(0.05))))
    with pytest.raises(NotReplayableError, match=r"E93.*the deadline of the run of 'a' expired"):
        await replay_async(tapes.newest(), agent())


class Breaking(ScriptedModel):
    """A model whose stream breaks off after its first text."""

    async def stream_response(self, *arguments: Any, **options: Any) -> Any:
        async for one in super().stream_response(*arguments, **options):
            yield one
            if one.type == "response.output_text.delta":
                raise ConnectionError("lost")


async def test_an_answer_that_broke_off(tapes: Tapes) -> None:
    agent = Agent[Any]("a", "Hi", model=Breaking(["A long answer"]))
    await tapes.run(Case(agent), streamed=True)
    assert tapes.newest().root.model_calls[0].broke_off
    with pytest.raises(NotReplayableError, match=r"E93.*an answer to 'a' broke off"):
        await replay_async(tapes.newest(), agent)
