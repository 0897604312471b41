"""A trace database of the older layout: search, the commands, a replay, a dataset made of its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kantan_agents import Recording, TraceStore, record_traces, replay
from kantan_agents.errors import HeldOutDatasetError
from kantan_agents.lab import Dataset, HeldOutDataset
from kantan_agents.testing import OfflineServer
from tests.old_layout import shop
from tests.old_layout.conftest import Copied, Shown


@pytest.fixture
def place(copied: Copied) -> Path:
    return copied("traces.db")


def test_runs_are_found_by_agent_prompt_version_and_failure(place: Path) -> None:
    store = TraceStore(place)
    first, *_ = reversed(store.traces(agent="support"))
    assert (first.input, first.output) == ("Where is order 4711", "order 4711 is on its way")
    assert (first.metadata["prompt_name"], first.metadata["prompt_version"]) == ("support", "v1")
    *_, verdict = store.traces(agent="critic")
    assert verdict.rubric is not None
    assert (verdict.rubric["score"], verdict.metadata["judged_trace_id"]) == (0, first.trace_id)
    assert [one.input for one in store.traces(prompt="support", version="v2")] == ["Refund order 12"] * 2
    failed = [one for one in store.traces(agent="support") if one.error]
    assert [(one.input, "no such model" in str(one.error)) for one in failed] == [("Fail", True)]
    (bill,) = store.traces(agent="biller")
    assert json.loads(str(bill.output)) == {"order": "4711", "amount": 12.5}
    assert [one.input for one in store.traces(keywords=["4711"])][-1] == "Where is order 4711"


def test_the_commands_show_calls_prompts_rules_and_delegation(place: Path, shown: Shown) -> None:
    listed = shown("traces", "list", "--db", place, "--agent", "support", "--json")
    runs = json.loads(listed)
    assert len(runs) == 4
    texts = [shown("traces", "show", run["trace_id"], "--db", place) for run in runs]
    assert "order_status" in texts[-1]
    assert "order 4711 is on its way" in texts[-1]
    assert any("[E8] Tool is not allowed: refund" in text for text in texts)
    assert any("no such model" in text for text in texts)
    lead = shown("traces", "list", "--db", place, "--agent", "lead", "--json")
    whole = shown("traces", "show", json.loads(lead)[0]["trace_id"], "--db", place)
    assert "checker" in whole
    assert "It is fine." in whole
    assert "greeting" in shown("traces", "prompts", "--db", place)


def test_the_index_is_built_and_used(place: Path, shown: Shown) -> None:
    shown("traces", "index", "--db", place)
    assert "Refund order 12" in shown("traces", "search", "Refund", "--db", place)


def test_new_runs_are_recorded_beside_the_older_ones(place: Path, server: OfflineServer) -> None:
    before = {one.trace_id for one in TraceStore(place).traces(agent="support")}
    recorder = record_traces(place)
    shop.support(server).run("Where is order 5", dict(shop.CUSTOMER))
    recorder.shutdown()
    inputs = {one.trace_id: one.input for one in TraceStore(place).traces(agent="support")}
    assert [inputs[new] for new in inputs.keys() - before] == ["Where is order 5"]
    assert before < inputs.keys()


def test_a_recording_is_replayed_by_the_agent(copied: Copied, server: OfflineServer) -> None:
    path = copied("recording.json")
    done = replay(path, shop.support(server))
    assert done.output == "order 4711 is on its way"
    assert server.requests == []
    text = path.read_bytes()
    Recording.load(path).save(path)
    assert path.read_bytes() == text


def test_a_recorded_run_is_replayed_by_the_agent(place: Path, server: OfflineServer) -> None:
    store = TraceStore(place)
    outputs = []
    for agent in (shop.lead(server), shop.biller(server)):
        (trace,) = store.traces(agent=agent.name)
        outputs.append(replay(Recording.from_trace(store, trace.trace_id), agent).output)
    assert outputs == ["All is checked.", shop.Bill("4711", 12.5)]
    assert server.requests == []


def test_files_of_datasets_are_read(copied: Copied) -> None:
    dataset = Dataset.load(copied("orders.jsonl"))
    assert dataset == Dataset.load(copied("orders.csv"))
    assert [one.id for one in dataset] == ["o0", "o1", "o2"]
    assert (dataset.cases[0].input, dataset.cases[0].context) == ("Hello, where is order 0", shop.CUSTOMER)
    sealed = copied("sealed.jsonl")
    with pytest.raises(HeldOutDatasetError):
        Dataset.load(sealed)
    assert len(HeldOutDataset.load(sealed).open("the older layout")) == 2


def test_a_dataset_is_made_of_the_runs(place: Path) -> None:
    dataset = Dataset.from_traces(TraceStore(place), prompt="support", version="v1")
    assert ("Where is order 4711", "order 4711 is on its way") in [
        (one.input, one.expected) for one in dataset
    ]
