"""Where two recorded runs part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents import set_trace_processors

from kantan_agents import Agent, Prompt, SQLiteRecorder, TraceStore
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from kantan_agents.traces.capture import RecordedError, RunRecord
from kantan_agents.traces.capture.compare_runs import Parting, parting


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[SQLiteRecorder]:
    made = SQLiteRecorder(tmp_path / "traces.sqlite3", flush_on_sigterm=False)
    set_trace_processors([made])
    yield made
    set_trace_processors([])
    made.shutdown()


@pytest.fixture
def record(recorder: SQLiteRecorder) -> Any:
    """Return a function that records a run: its answer comes after a call of a tool."""

    def one(text: str = "Help.", found: str = "in the yard", answer: str = "In the yard.") -> RunRecord:
        def look(order_id: str) -> str:
            """Look up an order."""
            return found

        replies = [ScriptedToolCall("look", {"order_id": "7"}), answer]
        with OfflineServer(replies) as server:
            agent = Agent("a", Prompt("p", "v1", text), model=server.bundle(), tools=[look])
            agent.run("Where is 7?")
        assert recorder.force_flush()
        (run,) = TraceStore(recorder.path).trace("LAST").runs
        return run

    return one


def parts(where: Parting | None) -> tuple[int, str, list[str]]:
    assert where is not None
    return where.call, where.what, [difference.part for difference in where.differences]


def test_the_same_run_again_does_not_part_although_the_provider_made_other_ids(record: Any) -> None:
    one, other = record(), record()
    assert one.model_calls[0].answer.response_id != other.model_calls[0].answer.response_id
    assert one.model_calls[1].request.hash != other.model_calls[1].request.hash
    assert parting(one, other) is None


def test_another_prompt_parts_the_first_request(record: Any) -> None:
    where = parting(record(), record(text="Be brief."))
    assert parts(where) == (0, "request", ["instructions"])


def test_another_result_of_a_tool_parts_the_request_after_it(record: Any) -> None:
    where = parting(record(), record(found="nowhere"))
    assert parts(where) == (1, "request", ["input[2]"])
    assert where is not None
    assert '-  "output": "in the yard",\n+  "output": "nowhere",' in where.differences[0].diff


def test_another_answer_parts_the_answers(record: Any) -> None:
    where = parting(record(), record(answer="Nowhere."))
    assert parts(where) == (1, "answer", ["answer[0]"])


def test_a_run_that_ended_earlier_parts_at_its_end(record: Any) -> None:
    run = record()
    shorter = attrs.evolve(run, model_calls=run.model_calls[:1])
    assert parting(run, shorter) == parting(shorter, run) == Parting(1, "end")


def test_another_model_or_a_failed_call_parts_the_runs(record: Any) -> None:
    run = record()
    first, second = run.model_calls
    other = attrs.evolve(run, model_calls=(attrs.evolve(first, model="other"), second))
    assert parts(parting(run, other)) == (0, "request", ["model"])
    error = RecordedError("APIError", "gone")
    failed = attrs.evolve(run, model_calls=(first, attrs.evolve(second, answer=None, error=error)))
    assert parts(parting(run, failed)) == (1, "answer", ["answer[0]", "error"])


def test_the_id_of_the_previous_response_counts_by_its_order(record: Any) -> None:
    def chained(run: RunRecord, previous: str | None) -> RunRecord:
        first, second = run.model_calls
        request = attrs.evolve(second.request, options={"previous_response_id": previous})
        return attrs.evolve(run, model_calls=(first, attrs.evolve(second, request=request)))

    one, other = record(), record()
    of_one, of_other = (run.model_calls[0].answer.response_id for run in (one, other))
    assert parting(chained(one, of_one), chained(other, of_other)) is None
    where = parting(chained(one, of_one), chained(other, "resp_of_another_run"))
    assert parts(where) == (1, "request", ["options.previous_response_id"])
