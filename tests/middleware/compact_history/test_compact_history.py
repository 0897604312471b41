"""``CompactHistory`` in runs: what the model gets, what stays as it is, and what is reported."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Mapping
from typing import Any, cast

import pytest
from agents import SQLiteSession, set_trace_processors
from pydantic import BaseModel

from kantan_agents import Agent, Middleware
from kantan_agents.core.events import HistoryCompacted, ModelCallFinished, ModelCallStarted, RunStarted
from kantan_agents.errors import BudgetExceededError, InvalidOptionError, RequestTooLongError
from kantan_agents.middleware import Budget, CompactHistory, Fallback, Redact
from kantan_agents.middleware.compact_history.tokens import tokens_of_item
from kantan_agents.testing import RecordedCall, ScriptedModel, ScriptedToolCall
from tests.middleware.compact_history.conversations import (
    Answering,
    exchanges,
    looked_up,
    talk,
    texts,
    user,
)
from tests.middleware.test_redact import Recorded

LAST = user("And now?")


def agent_with(model: Any, *middleware: Any, **options: Any) -> Agent[Any]:
    return Agent("a", "Help.", model=model, middleware=[*middleware], tool_providers=None, **options)


async def steps_of(agent: Agent[Any], given: Any, **options: Any) -> list[HistoryCompacted]:
    """Run an agent; return its steps."""
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        await agent.run_async(given, **options)
    return [event for event in seen if isinstance(event, HistoryCompacted)]


async def test_a_short_conversation_is_sent_as_it_is() -> None:
    model = Answering()
    given = [*exchanges(3), LAST]
    assert await steps_of(agent_with(model, CompactHistory(4_000)), given) == []
    assert model.sent == [given]


async def test_a_small_step_is_made_if_it_reaches_the_target() -> None:
    model = Answering()
    given = [*talk(20), LAST]
    most = int(sum(map(tokens_of_item, given)) / 0.53)
    compact = CompactHistory(most, begin_at=0.52, reduce_to=0.5, summarizer=False)
    assert len(await steps_of(agent_with(model, compact), given)) == 1
    assert sum(map(tokens_of_item, model.sent[0])) <= 0.5 * most


async def test_old_results_become_stubs_and_the_newest_turns_stay() -> None:
    model = Answering()
    given = [*exchanges(12), LAST]
    [step] = await steps_of(agent_with(model, CompactHistory(4_000)), given)
    [sent] = model.sent
    changed = [place for place, item in enumerate(sent) if item != given[place]]
    assert changed == [2 + 4 * number for number in range(step.results_removed)]
    whole = given[2]["output"]
    assert sent[2] == {
        **given[2],
        "output": f"[tool result removed to save space: {len(whole):,} characters]",
    }
    assert sent[-7:] == given[-7:]
    assert (step.items_removed, step.is_summarized, step.limit, step.model) == (0, False, 4_000, "m")
    assert step.tokens_before > 3_200 > 2_000 >= step.tokens_after
    assert model.summarized == []


async def test_turns_are_left_out_if_stubs_are_not_enough_and_summarised_by_the_model() -> None:
    model = Answering("The user asked 34 things.")
    given = [*exchanges(40), LAST]
    [step] = await steps_of(agent_with(model, CompactHistory(4_000)), given)
    [sent] = model.sent
    assert step.is_summarized
    header, summary = sent[0]["content"].split("\n")
    count = step.items_removed
    assert header == f"[Summary of {count} earlier messages and tool calls, written by a model to save space]"
    assert summary == "The user asked 34 things."
    assert len(sent) == len(given) - step.items_removed + 1
    assert sent[-1] == LAST
    assert step.tokens_after <= 2_000
    # The summary is of the results themselves, not of their stubs.
    assert "Question 0?" in model.summarized[0]
    assert "A line of what was found." in model.summarized[0]
    assert "removed to save space" not in model.summarized[0]
    assert all(call.tools == [] and call.output_schema is None for call in model.calls[:-1])


async def test_steps_are_large_and_the_beginning_stays_the_same_between_them() -> None:
    model = Answering()
    agent = agent_with(model, CompactHistory(4_000))
    steps, alike = 0, 0
    for count in range(1, 80):
        steps += len(await steps_of(agent, [*exchanges(count), LAST]))
        if count > 1:
            before = model.sent[-2][:-1]
            alike += model.sent[-1][: len(before)] == before
    assert steps == 79 - 1 - alike
    assert 5 <= steps <= 20
    # Each summary goes on from the one before.
    assert all(("Question 0?" in text) != ("Summary of what was before" in text) for text in model.summarized)


async def test_the_conversation_of_one_run_is_shortened_as_it_grows() -> None:
    calls = [ScriptedToolCall("find", {"number": number}) for number in range(30)]

    def find(number: int) -> str:
        """Find something."""
        return f"{number}: " + "A line of what was found. " * 60

    replies = iter(calls)
    model = Answering()
    reply = model._reply

    def next_call(call: RecordedCall) -> Any:
        answer = reply(call)
        return next(replies, "Done.") if answer == "Well." else answer

    model._answer = next_call
    agent = agent_with(model, CompactHistory(4_000), tools=[find])
    context: dict[str, Any] = {}
    steps = await steps_of(agent, "Find 30 things.", context=context, max_turns=40)
    assert len(steps) >= 3
    assert all(LAST not in sent and user("Find 30 things.") in sent for sent in model.sent)
    result = context["result"]
    assert result.final_output == "Done."
    assert len(result.to_input_list()) == 1 + 60 + 1
    assert "removed to save space" not in texts(result.to_input_list())


async def test_the_first_message_of_the_user_stays_on_request() -> None:
    given = [user("The task."), *exchanges(40), LAST]
    for keep_first in (False, True):
        model = Answering()
        await steps_of(agent_with(model, CompactHistory(4_000, keep_first=keep_first)), given)
        assert (user("The task.") in model.sent[0]) == keep_first


async def test_input_history_result_and_session_are_what_they_would_be_without_it() -> None:
    async def run(*middleware: Any) -> Any:
        given = [*exchanges(40), LAST]
        before = copy.deepcopy(given)
        session = SQLiteSession("s")
        context = await agent_with(Answering(), *middleware).run_async(given, session=session)
        assert given == before
        items = await session.get_items()
        session.close()
        newest = context["result"].to_input_list()
        return context["history"], [_without_ids(item) for item in [*newest, *items]]

    assert await run(CompactHistory(2_000)) == await run()


def _without_ids(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}


async def test_middleware_outside_gets_the_whole_conversation_back() -> None:
    class Outside(Middleware):
        seen: Any = None

        async def model_call(self, call: Any, call_next: Any) -> Any:
            given = call.input
            answer = await call_next(call)
            assert call.input is given
            self.seen = len(given)
            return answer

    outside = Outside()
    given = [*exchanges(40), LAST]
    await steps_of(agent_with(Answering(), outside, CompactHistory(2_000)), given)
    assert outside.seen == len(given)


# Summaries.


async def test_a_budget_after_it_counts_its_summaries() -> None:
    outside, budget = Budget(max_model_calls=10), Budget(max_model_calls=10)
    agent = agent_with(Answering(), outside, CompactHistory(8_000), budget)
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        await agent.run_async([*talk(40), LAST])
    started = [event.internal for event in seen if isinstance(event, ModelCallStarted)]
    assert started == [True] * (len(started) - 1) + [False]
    assert budget.used().model_calls == len(started) > 1
    assert outside.used().model_calls == 1
    finished = [event.outcome for event in seen if isinstance(event, ModelCallFinished)]
    assert set(finished) == {"finished"}


async def test_another_model_summarises() -> None:
    small, large = ScriptedModel(["The summary."]), Answering()
    await steps_of(agent_with(large, CompactHistory(8_000, summarizer=small)), [*talk(40), LAST])
    assert large.summarized == []
    assert len(small.calls) == 1
    assert "The summary." in texts(large.sent[0])


async def test_an_agent_summarises_in_a_run_of_its_own() -> None:
    model, large = ScriptedModel(["The summary."]), Answering()
    writer = Agent("writer", "You write summaries.", model=model, tool_providers=None)
    agent = agent_with(large, CompactHistory(8_000, summarizer=writer))
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        await agent.run_async([*talk(40), LAST])
    outer, inner = (event for event in seen if isinstance(event, RunStarted))
    assert (inner.agent, inner.parent_run_id) == ("writer", outer.run_id)
    assert model.calls[0].system_instructions == "You write summaries."
    assert "The summary." in texts(large.sent[0])


@pytest.mark.parametrize(
    ("summary", "error"),
    [
        (lambda _: (_ for _ in ()).throw(ConnectionError("down")), "ConnectionError"),
        ("", "NoSummaryError"),
        ("   \n", "NoSummaryError"),
    ],
    ids=["fails", "is empty", "is blank"],
)
async def test_if_a_summary_fails_turns_are_left_out_with_a_notice(summary: Any, error: str) -> None:
    model = Answering(summary)
    agent = agent_with(model, CompactHistory(4_000))
    [step] = await steps_of(agent, [*exchanges(40), LAST])
    assert (step.error_type, step.is_summarized) == (error, False)
    notice = f"[{step.items_removed} earlier messages and tool calls removed to save space]"
    assert model.sent[0][0] == user(notice)


async def test_after_a_failed_summary_the_next_run_tries_again() -> None:
    replies = iter(["", "It worked."])
    model = Answering(lambda _: next(replies, "It worked again."))
    agent = agent_with(model, CompactHistory(8_000))
    given = [*talk(40), LAST]
    assert (await steps_of(agent, given))[0].error_type == "NoSummaryError"
    assert (await steps_of(agent, given))[0].is_summarized
    assert "It worked" in texts(model.sent[-1])
    assert await steps_of(agent, given) == []


async def test_a_later_summary_reads_again_what_a_failed_one_has_not_read() -> None:
    outcomes = iter(["The first.", "", "The third."])
    model = Answering(lambda _: next(outcomes, "More."))
    replies = iter([ScriptedToolCall("find", {"number": number}) for number in range(40)])
    reply = model._reply

    def find(number: int) -> str:
        """Find something."""
        return f"{number}: " + "A line of what was found. " * 20

    def next_call(call: RecordedCall) -> Any:
        answer = reply(call)
        return next(replies, "Done.") if answer == "Well." else answer

    model._answer = next_call
    agent = agent_with(model, CompactHistory(8_000), tools=[find])
    steps = await steps_of(agent, talk(40), max_turns=50)
    summarized = [(step.is_summarized, step.error_type) for step in steps if step.items_removed]
    assert summarized[:3] == [(True, None), (True, "NoSummaryError"), (True, None)]
    first, second, third = (text.split("\n\n")[0] for text in model.summarized[:3])
    assert (first, second, third) == (
        "The part of the conversation:",
        "Summary of what was before:",
        "The part of the conversation:",
    )
    assert "Question 0?" in model.summarized[2]


async def test_an_error_that_ends_a_run_ends_it_in_a_summary_too() -> None:
    class Refuse(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            if call.internal:
                raise BudgetExceededError(what="tokens", limit=1, used=1)
            return await call_next(call)

    model = Answering()
    with pytest.raises(BudgetExceededError):
        await agent_with(model, CompactHistory(4_000), Refuse()).run_async([*exchanges(40), LAST])
    assert model.calls == ()


async def test_without_a_summariser_turns_are_left_out_with_a_notice() -> None:
    model = Answering()
    [step] = await steps_of(
        agent_with(model, CompactHistory(4_000, summarizer=False)), [*exchanges(40), LAST]
    )
    assert (step.is_summarized, step.error_type, model.summarized) == (False, None, [])
    assert "earlier messages and tool calls removed to save space]" in model.sent[0][0]["content"]


async def test_a_summary_that_is_too_long_is_cut() -> None:
    model = Answering("word " * 20_000)
    [step] = await steps_of(agent_with(model, CompactHistory(4_000)), [*exchanges(40), LAST])
    assert step.tokens_after <= 2_000
    assert "characters removed here to save space" in model.sent[0][0]["content"]


async def test_a_cancelled_summary_ends_the_run() -> None:
    asked = asyncio.Event()

    async def never(_: RecordedCall) -> Any:
        asked.set()
        await asyncio.sleep(3600)

    model = Answering(never)
    task = asyncio.create_task(agent_with(model, CompactHistory(4_000)).run_async([*exchanges(40), LAST]))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.sent == []


async def test_long_parts_are_summarised_in_several_requests_of_bounded_size() -> None:
    model = Answering()
    given = [user("word " * 3_000), *exchanges(100), LAST]
    await steps_of(agent_with(model, CompactHistory(4_000)), given)
    assert 2 <= len(model.summarized) <= 8
    assert max(map(len, model.summarized)) < 4 * 4_000


# The size of requests.


async def test_the_count_of_the_provider_decides_and_only_what_was_added_is_estimated() -> None:
    counted = {2: 1_000, 3: 2_000, 4: 5_000}
    model = Answering(tokens=lambda call: counted[len(call.input) // 4])
    agent = agent_with(model, CompactHistory(6_000))
    for count in (2, 3, 4):
        assert (
            await steps_of(agent, [*exchanges(count), LAST]) == []
        )  # by the estimate it has about 1,300 tokens
    counted[4] = 3_000
    [step] = await steps_of(agent, [*exchanges(4), LAST, user("Yes?")])
    assert 5_000 < step.tokens_before < 5_100
    assert step.results_removed == 2


async def test_a_count_that_cannot_be_that_of_the_request_is_ignored() -> None:
    model = Answering(tokens=lambda _: 3)
    agent = agent_with(model, CompactHistory(4_000))
    assert await steps_of(agent, [*exchanges(10), LAST]) == []
    [step] = await steps_of(agent, [*exchanges(14), LAST])
    assert step.tokens_before > 3_200


async def test_each_model_has_its_own_limit() -> None:
    given = [*exchanges(12), LAST]
    for name, count in (("small", 1), ("large", 0), ("other", 0)):
        compact = CompactHistory({"small": 4_000, "large": 100_000})
        assert len(await steps_of(agent_with(Answering(name=name), compact), given)) == count
    compact = CompactHistory({"large": 100_000, "*": 4_000})
    assert len(await steps_of(agent_with(Answering(name="other"), compact), given)) == 1


async def test_a_fallback_to_a_model_with_a_smaller_window_sends_it_less() -> None:
    def down(_: RecordedCall) -> Any:
        raise ConnectionError("down")

    large, small = ScriptedModel(down), Answering(name="small")
    large.name = "large"  # type: ignore[attr-defined]
    compact = CompactHistory({"large": 100_000, "small": 4_000})
    given = [*exchanges(12), LAST]
    [step] = await steps_of(agent_with(large, Fallback(small), compact), given)
    assert large.calls[0].input == given
    assert step.model == "small"
    assert texts(small.sent[0]).count("removed to save space") == step.results_removed > 0


async def test_long_instructions_do_not_make_each_request_a_step() -> None:
    model = Answering()
    agent = Agent("a", "Rule. " * 2_300, model=model, middleware=[CompactHistory(6_000)], tool_providers=None)
    steps = 0
    for count in range(1, 60):
        steps += len(await steps_of(agent, [*talk(count), LAST]))
    # The instructions alone are more than half of the limit, so the target cannot be reached.
    assert 1 <= steps <= 20
    assert len(model.sent) == 59


# What cannot be shortened.


async def test_a_result_longer_than_everything_may_be_is_cut_in_the_middle() -> None:
    model = Answering()
    huge = "start " + "x " * 40_000 + "end"
    given = [*exchanges(2), user("Look."), *looked_up(7, huge)]
    [step] = await steps_of(agent_with(model, CompactHistory(4_000)), given)
    [sent] = model.sent
    assert (step.results_cut, step.items_removed) == (1, 0)
    assert sent[-1]["output"].startswith("start ")
    assert sent[-1]["output"].endswith("end")
    assert " characters removed here to save space]" in sent[-1]["output"]
    assert step.tokens_after <= 2_000
    assert sent[:-1] == given[:-1]  # nothing else had to go


async def test_the_newest_results_are_cut_to_the_same_length_if_they_are_too_long_together() -> None:
    model = Answering()
    results = [looked_up(number, "word " * 1_500) for number in range(5)]
    given = [user("Look."), *(call for call, _ in results), *(result for _, result in results)]
    [step] = await steps_of(agent_with(model, CompactHistory(4_000)), given)
    lengths = {len(item["output"]) for item in model.sent[0][-5:]}
    assert step.results_cut == 5
    assert max(lengths) - min(lengths) <= 2
    assert step.tokens_after <= 2_000


async def test_input_that_is_too_long_is_an_error_that_names_the_limit() -> None:
    agent = agent_with(Answering(), CompactHistory(1_000))
    for given in ("word " * 4_000, [*exchanges(3), user("word " * 4_000)]):
        with pytest.raises(RequestTooLongError, match=r"\[E177\] .* for m, at most 1000") as caught:
            await agent.run_async(given)
        assert caught.value.tokens > caught.value.limit == 1_000


async def test_input_that_is_too_long_is_sent_on_request(caplog: pytest.LogCaptureFixture) -> None:
    model = Answering()
    with caplog.at_level(logging.WARNING, "kantan_agents.middleware"):
        await agent_with(model, CompactHistory(1_000, on_too_long="send")).run_async("word " * 4_000)
    assert model.sent == ["word " * 4_000] or model.sent == [[user("word " * 4_000)]]
    assert "a request is too long and cannot be shortened" in caplog.text


async def test_a_model_with_a_larger_window_takes_what_is_too_long_for_the_first() -> None:
    small, large = Answering(name="small"), Answering(name="large")
    compact = CompactHistory({"small": 1_000, "large": 100_000})
    await agent_with(small, Fallback(large), compact).run_async("word " * 4_000)
    assert (len(small.calls), len(large.calls)) == (0, 1)


async def test_calls_that_wait_and_instructions_among_the_messages_stay() -> None:
    pending = {"type": "function_call", "call_id": "p", "name": "pay", "arguments": "{}"}
    rule = {"role": "developer", "content": "Be kind."}
    model = Answering()
    given = [rule, *exchanges(20), pending, *exchanges(20), LAST]
    await steps_of(agent_with(model, CompactHistory(4_000)), given)
    assert rule in model.sent[0]
    assert pending in model.sent[0]


@pytest.mark.parametrize("option", ["previous_response_id", "conversation_id"])
async def test_a_conversation_at_the_provider_is_not_shortened(
    option: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = Answering()
    given = [*exchanges(40), LAST]
    with caplog.at_level(logging.INFO, "kantan_agents.middleware"):
        await agent_with(model, CompactHistory(4_000)).run_async(given, None, **{option: "x"})
    assert len(model.sent[0]) == len(given)
    assert caplog.text.count("a conversation stored at the provider is not shortened") == 1


# Together with other features.


async def test_streams_are_shortened_and_hide_the_summary() -> None:
    model = Answering("Hidden.")
    agent = agent_with(model, CompactHistory(4_000))
    async with agent.stream([*exchanges(40), LAST]) as stream:
        events = [event async for event in stream]
    assert [event.type for event in events].count("history_compacted") == 1
    assert "".join(event.text for event in events if event.type == "text_delta") == "Well."
    assert "Hidden." in texts(model.sent[0])


async def test_structured_output_is_read_from_the_answer_not_from_the_summary() -> None:
    class Count(BaseModel):
        number: int

    class Structured(Answering):
        def _reply(self, call: RecordedCall) -> Any:
            answer = super()._reply(call)
            return '{"number": 3}' if answer == "Well." else answer

    model = Structured()
    context = await agent_with(model, CompactHistory(4_000), output_type=Count).run_async(
        [*exchanges(40), LAST]
    )
    assert context["result"].final_output == {"number": 3} or context["result"].final_output.number == 3
    assert len(model.summarized) >= 1
    assert [call.output_schema for call in model.calls[:-1]] == [None] * len(model.summarized)


async def test_a_model_that_summarises_is_offered_no_tools_and_no_hand_offs() -> None:
    def find() -> str:
        """Find something."""
        return "found"

    model = Answering()
    other = agent_with(Answering())
    agent = agent_with(model, CompactHistory(8_000), tools=[find], handoffs=[other])
    await agent.run_async([*talk(40), LAST])
    summary, answer = model.calls
    assert len(summary.tools) == len(summary.handoffs) == 0
    assert len(answer.tools) == len(answer.handoffs) == 1


async def test_a_summariser_with_a_smaller_window_gets_smaller_parts() -> None:
    small = Answering(name="small")
    compact = CompactHistory({"m": 8_000, "small": 2_000}, summarizer=small)
    await agent_with(Answering(), compact).run_async([*talk(40), LAST])
    assert len(small.summarized) >= 3
    assert max(map(len, small.summarized)) < 4 * 2_000


async def test_the_count_of_another_model_is_not_that_of_this_one() -> None:
    outcomes = iter([ConnectionError("down")])

    def reply(_: RecordedCall) -> Any:
        error = next(outcomes, None)
        if error is not None:
            raise error
        return "Well."

    model = ScriptedModel(reply)
    model.name = "m"  # type: ignore[attr-defined]
    spare = Answering(tokens=lambda _: 6_000, name="spare")
    agent = agent_with(model, CompactHistory(8_000), Fallback(spare))
    given = [*talk(20), LAST]
    assert await steps_of(agent, given) == []
    assert len(spare.calls) == 1
    assert await steps_of(agent, [*given, *talk(4), LAST]) == []


async def test_the_model_that_summarises_sees_what_is_redacted() -> None:
    model = Answering()
    given = [user("I am aiko@example.com."), *exchanges(40), LAST]
    await agent_with(model, Redact(), CompactHistory(4_000)).run_async(given)
    assert "[email]" in model.summarized[0]
    assert "aiko@example.com" not in repr(model.calls)


class Spans(Recorded):
    """The names of spans, with their data."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[Any] = []

    def on_span_end(self, span: Any) -> None:
        self.spans.append((getattr(span.span_data, "name", ""), getattr(span.span_data, "data", None)))


async def test_the_trace_has_a_span_around_the_summary() -> None:
    recorded = Spans()
    set_trace_processors([recorded])
    await agent_with(Answering(), CompactHistory(8_000)).run_async([*talk(40), LAST])
    [data] = [data for name, data in recorded.spans if name == "compact_history"]
    assert data["is_summarised"]
    assert data["limit"] == 8_000
    assert data["tokens_before"] > data["tokens_after"]


async def test_the_next_run_of_a_session_goes_on_from_the_summary() -> None:
    model = Answering()
    agent = agent_with(model, CompactHistory(4_000))
    session = SQLiteSession("s")
    await session.add_items(cast("Any", exchanges(40)))
    assert len(await steps_of(agent, "And now?", session=session)) == 1
    made = len(model.summarized)
    assert await steps_of(agent, "And then?", session=session) == []
    session.close()
    first, second = model.sent
    assert [_without_ids(item) for item in second[: len(first)]] == [_without_ids(item) for item in first]
    assert len(model.summarized) == made


async def test_an_object_remembers_only_so_many_conversations() -> None:
    model = Answering()
    agent = agent_with(model, CompactHistory(8_000, remember=1))
    one, other = [[user(f"I am {name}."), *talk(40), LAST] for name in ("Aiko", "Ben")]
    for given, is_new in ((one, True), (one, False), (other, True), (one, True)):
        assert bool(await steps_of(agent, given)) == is_new


async def test_runs_at_the_same_time_do_not_mix() -> None:
    model = Answering(lambda call: f"Of {call.input[0]['content'].count('Aiko')}.")
    agent = agent_with(model, CompactHistory(8_000))
    given = [[user(f"I am {name}."), *talk(40), LAST] for name in ("Aiko", "Ben")]
    await asyncio.gather(*(agent.run_async(items) for items in given * 3))
    assert len(model.sent) == 6
    assert {sent[0]["content"].splitlines()[1] for sent in model.sent} == {"Of 1.", "Of 0."}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": {}}, "max_tokens"),
        ({"max_tokens": {"m": -1}}, r"max_tokens\['m'\]"),
        ({"max_tokens": {1: 10}}, "max_tokens"),
        ({"begin_at": 0}, "begin_at"),
        ({"begin_at": 1.1}, "begin_at"),
        ({"reduce_to": 0.8}, "reduce_to"),
        ({"reduce_to": float("nan")}, "reduce_to"),
        ({"keep_turns": 0}, "keep_turns"),
        ({"keep_first": 1}, "keep_first"),
        ({"summarizer": 3}, "summarizer"),
        ({"on_too_long": "cut"}, "on_too_long"),
        ({"remember": 0}, "remember"),
    ],
    ids=str,
)
def test_invalid_options_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"Invalid option {named}: must be"):
        CompactHistory(**{"max_tokens": 1_000, **options})


def test_its_repr_shows_the_limits() -> None:
    assert repr(CompactHistory(1_000)) == "CompactHistory(1000)"
    assert repr(CompactHistory({"m": 10, "*": 5})) == "CompactHistory({'m': 10, '*': 5})"
