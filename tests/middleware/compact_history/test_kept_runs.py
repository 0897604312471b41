"""``CompactHistory`` in replays, in durable runs, and with what a provider sends over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents import Usage

from kantan_agents import Agent
from kantan_agents.agent.own_calls import AnswerLimit
from kantan_agents.core.events import HistoryCompacted
from kantan_agents.lab.replay import replay_async
from kantan_agents.middleware import CompactHistory
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ScriptedModel, ScriptedToolCall
from tests.durable.revival import Case as DurableCase
from tests.durable.revival import call, revive
from tests.lab.replay.taping import Case, Tapes
from tests.middleware.compact_history.conversations import exchanges, talk, user

GIVEN = [*talk(40), user("And now?")]


@pytest.fixture
def tapes(tmp_path: Path) -> Iterator[Tapes]:
    made = Tapes(tmp_path)
    yield made
    made.recorder.shutdown()


def agent(*steps: Any, **options: Any) -> Agent[Any]:
    def find(number: int) -> str:
        """Find something."""
        return f"{number}: " + "A line of what was found. " * 100

    compact = CompactHistory(8_000, **options)
    model = ScriptedModel(list(steps))
    return Agent("a", "Help.", model=model, tools=[find], middleware=[compact], tool_providers=None)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_replay_makes_no_summary_and_the_same_requests(tapes: Tapes, streamed: bool) -> None:
    finds = [ScriptedToolCall("find", {"number": number}) for number in range(8)]
    taped = await tapes.record(Case(agent("The summary.", *finds, "Done."), GIVEN), streamed=streamed)
    assert [one["type"] for one in taped.events].count("history_compacted") >= 2
    assert (await tapes.replays(taped, agent())).output == "Done."


async def test_a_run_whose_summary_had_no_limit_is_replayed(
    tapes: Tapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unlimited(_self: Any, call: Any, call_next: Any) -> Any:
        return await call_next(call)

    with monkeypatch.context() as patched:
        patched.setattr(AnswerLimit, "model_call", unlimited)
        taped = await tapes.record(Case(agent("The summary.", "Done."), GIVEN))
    assert "max_tokens" not in taped.recording.root.model_calls[0].request.settings
    assert (await replay_async(taped.recording, agent())).output == "Done."


async def test_a_replay_does_not_use_what_the_object_remembers(tapes: Tapes) -> None:
    live = agent("The summary.", "Done.")
    taped = await tapes.record(Case(live, GIVEN))
    assert (await tapes.replays(taped, live)).output == "Done."


async def test_a_replay_repeats_a_summary_that_has_failed(tapes: Tapes) -> None:
    taped = await tapes.record(Case(agent(ConnectionError("down"), "Done."), GIVEN))
    assert "earlier messages and tool calls removed" in str(
        taped.recording.root.model_calls[-1].request.input
    )
    assert (await tapes.replays(taped, agent())).output == "Done."


async def test_a_run_that_went_on_from_the_summary_of_an_earlier_one_is_replayed_alone(tapes: Tapes) -> None:
    live = agent("The summary.", "First.", "Second.", "Third.")
    await tapes.run(Case(live, GIVEN))
    await tapes.run(Case(live, [*GIVEN, user("Yes?")]))
    taped = await tapes.record(Case(live, [*GIVEN, user("Yes?"), user("Well?")]))
    [sent] = taped.recording.root.model_calls
    assert "The summary." in str(sent.request.input)
    assert (await tapes.replays(taped, agent())).output == "Third."


async def test_the_run_of_an_agent_that_summarises_is_replayed_too(tapes: Tapes) -> None:
    def with_writer(summary: list[Any], *steps: Any) -> Agent[Any]:
        writer = Agent("writer", "Write.", model=ScriptedModel(summary), tool_providers=None)
        return agent(*steps, summarizer=writer)

    taped = await tapes.record(Case(with_writer(["The summary."], "Done."), GIVEN))
    assert (await tapes.replays(taped, with_writer([]))).output == "Done."


# Durable runs.


@attrs.define
class Ends:
    """A tool during which the first process ends."""

    case: DurableCase

    def pay(self, amount: int) -> str:
        """Pay."""
        self.case.effect(f"pay {amount}")
        self.case.die()
        return f"paid {amount}"


def _build(case: DurableCase, **options: Any) -> Agent[Any]:
    return case.agent(CompactHistory(8_000, **options), tools=[Ends(case).pay])


def _build_with_writer(case: DurableCase) -> Agent[Any]:
    writer = Agent("writer", "Write.", model=case.server.bundle(), tool_providers=None)
    return _build(case, summarizer=writer)


def _reply(request: RecordedRequest) -> Any:
    if "summary only" in str(request.body):
        return "The summary."
    is_paid = any(item.get("type") == "function_call_output" for item in request.input)
    return "Done." if is_paid else [call("pay", "c1", amount=3)]


def test_a_durable_run_that_goes_on_makes_no_second_summary(tmp_path: Path) -> None:
    cases = {
        "model": DurableCase(_build, _reply, GIVEN),
        "writer": DurableCase(_build_with_writer, _reply, GIVEN),
    }
    revive(tmp_path, cases)
    for case in cases.values():
        assert case.output == "Done."
        first, second = case.requests
        assert ["summary only" in str(request.body) for request in first] == [True, False]
        [last] = second
        assert "The summary." in str(last.input[0])
        assert last.input[: len(first[-1].input)] == first[-1].input


# Over HTTP.


async def test_the_usage_that_a_provider_reports_decides_over_http() -> None:
    def reply(request: RecordedRequest) -> Any:
        read = 200 * len(request.input)
        usage = Usage(requests=1, input_tokens=read, output_tokens=5, total_tokens=read + 5)
        return Reply(text="Well.", usage=usage)

    with OfflineServer(reply) as server:
        compact = CompactHistory(4_000, summarizer=False)
        talker = Agent("a", "Help.", model=server.bundle(), middleware=[compact], tool_providers=None)
        seen: list[Any] = []
        given: list[Any] = []
        with talker.subscribe(seen.append):
            for count in range(1, 5):
                given += [*exchanges(count)[-4:], user("And now?")]
                await talker.run_async(given)
        steps = [event for event in seen if isinstance(event, HistoryCompacted)]
    # The provider has counted 3,000 tokens for the third request, so the fourth has more, which is estimated.
    [step] = steps
    assert 3_000 < step.tokens_before < 4_500
    assert step.tokens_after <= 2_000
    sizes = [len(request.input) for request in server.requests]
    assert sizes == [5, 10, 15, 20]
    assert str(server.requests[3].input).count("removed to save space") == step.results_removed > 0
