"""What recorded runs say about a rollout: figures, guards, warnings and the verdict."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import Usage, function_tool, trace

from benchmarks.overhead import FakeModel
from kantan_agents import (
    Agent,
    Next,
    Run,
    TraceStore,
    judge_agent,
    record_traces,
)
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import (
    Case,
    Dataset,
    evaluate_async,
    evaluator,
    record_score,
    record_score_async,
    status,
    status_async,
)
from kantan_agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from kantan_agents.traces.database_url import as_place, path_of
from kantan_agents.traces.registry import flush_all
from kantan_agents.traces.store.connection import changing
from tests.lab.rollout.trial import V1, V2, drawn, echo, rollout, shared_of, support, user


@pytest.fixture(params=["file", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    is_file = request.param == "file"
    place = str(tmp_path / "traces.db") if is_file else request.getfixturevalue("postgres_traces_url")
    recorder = record_traces(place)
    yield path_of(as_place(place))
    recorder.shutdown()


def used(tokens: int, text: str) -> ModelStep:
    """Return a reply of a model that has used tokens."""
    usage = Usage(requests=1, input_tokens=tokens, output_tokens=0, total_tokens=tokens)
    return ModelStep([assistant_message(text)], usage=usage)


async def runs(agent: Agent[Any], numbers: range) -> list[Any]:
    """Run the agent once for each user; return the contexts, None for a run that has failed."""
    returned: list[Any] = []
    for number in numbers:
        try:
            returned.append(await agent.run_async("Hi", user(number)))
        except RuntimeError:
            returned.append(None)
    return returned


async def test_figures_count_each_unit_once(path: Path) -> None:
    agent = support(rollout(metric="thumb"))
    for _ in range(3):
        contexts = await runs(agent, range(20))
    for context in contexts:
        await record_score_async(context, "thumb", 1)
        record_score(context, "thumb", 0, comment="changed my mind")
        record_score(context, "other", 0)
    found = await status_async("support")
    assert sum(arm.units for arm in found.arms) == 20
    assert sum(arm.runs for arm in found.arms) == 60
    assert sum(arm.scored for arm in found.arms) == 20
    assert [arm.mean_score for arm in found.arms] == [1.0, 1.0]
    assert [arm.failed for arm in found.arms] == [0.0, 0.0]
    assert all(arm.latency_p50 is not None and arm.latency_p50 > 0 for arm in found.arms)
    assert (found.verdict, found.is_alarm) == ("continue", False)
    assert found.reason.startswith("cannot tell yet whether v2 is better than v1 on thumb: +0 (")


async def test_a_better_arm_is_to_be_promoted(path: Path) -> None:
    agent = support(rollout(metric="thumb"))
    for number in range(100):
        context = await agent.run_async("Hi", user(number))
        is_new = context["result"].final_output == V2.text
        record_score(context, "thumb", number % 10 < (9 if is_new else 3))
    found = status("support")
    assert (found.verdict, found.arm) == ("promote", "v2")
    assert found.reason.startswith("v2 is better than v1 on thumb by ")
    (one,) = found.metric
    assert one.is_better
    assert one.low is not None
    assert 0 < one.low <= 0.6
    assert not one.is_worse


async def test_a_worse_arm_is_an_alarm(path: Path) -> None:
    agent = support(rollout(metric="thumb"))
    for number in range(60):
        context = await agent.run_async("Hi", user(number))
        record_score(context, "thumb", float(context["result"].final_output == V1.text))
    found = status("support")
    assert (found.verdict, found.arm, found.is_alarm) == ("stop", "v2", True)
    assert found.reason.startswith("v2 is worse than v1 on thumb by 1 (-1 to -0.")


async def test_rubrics_of_judges_are_the_metric_wherever_they_are(path: Path) -> None:
    agent = support(rollout(metric="rubric"))
    judge = judge_agent(V1, model=ScriptedModel(lambda _: {"score": 0.25, "comments": ["short"]}))
    judged = 0
    for number in range(12):
        if number % 2:
            with trace("conversation"):  # the judge is in the same trace
                await agent.run_async("Hi", user(number))
        else:
            context = await agent.run_async("Hi", user(number))
            run = TraceStore(path).traces(limit=1)[0]
            metadata = {"judged_trace_id": run.trace_id}
            await judge.run_async("Hi", run_config={"trace_metadata": metadata})
            assert context["result"].final_output
            judged += 1
    found = status("support")
    assert sum(arm.scored for arm in found.arms) == judged
    assert {arm.mean_score for arm in found.arms if arm.scored} == {0.25}


async def test_failing_runs_set_off_the_guard_of_errors(path: Path) -> None:
    is_next_broken = itertools.cycle([True, False]).__next__

    def answer(call: Any) -> Any:
        if call.system_instructions == V2.text and is_next_broken():
            return ModelStep.raise_error(RuntimeError("broken"))
        return "fine"

    agent = support(rollout(guards={"error": 0.05}), model=ScriptedModel(answer))
    await runs(agent, range(100))
    found = status("support")
    assert (found.verdict, found.is_alarm) == ("stop", True)
    assert re.match(r"v2 exceeds the limit \+0.05 of error \(p < 0.001, \d+ units\)", found.reason)
    assert found.arms[0].failed == 0.0
    assert found.arms[1].failed == pytest.approx(0.5, abs=0.02)


async def test_costs_and_tokens_come_from_the_record_of_each_model_call(path: Path) -> None:
    def answer(call: Any) -> Any:
        return used(100 if call.system_instructions == V1.text else 300, "fine")

    guards = {"tokens": "+20%", "cost": "+20%"}
    prices = {"ScriptedModel": (10.0, 0.0)}
    agent = support(rollout(guards=guards, prices=prices), model=ScriptedModel(answer))
    await runs(agent, range(80))
    found = status("support")
    assert [arm.mean_tokens for arm in found.arms] == [100, 300]
    assert [arm.mean_cost for arm in found.arms] == [pytest.approx(0.001), pytest.approx(0.003)]
    assert [one.has_fired for one in found.guards] == [True, True]
    assert found.reason.startswith("v2 exceeds the limit +20% of tokens")


async def test_a_guard_that_sees_nothing_says_so(path: Path) -> None:
    guards = {"tokens": "+20%", "cost": "+20%"}
    agent = support(rollout(guards=guards, prices={"another": (1, 1)}), model=echo())
    record_traces(path, record_requests=False)
    await runs(agent, range(30))
    found = status("support")
    assert [warning.split(",")[0] for warning in found.warnings] == [
        "no run has a known cost",
        "no run has a known number of tokens",
    ]


async def test_a_metric_that_nobody_writes_is_a_warning(path: Path) -> None:
    agent = support(rollout(metric="thumb"))
    contexts = await runs(agent, range(30))
    found = status("support")
    assert found.warnings == (
        "none of 30 runs has a score of 'thumb'; call record_score, or choose another metric",
    )
    assert (found.verdict, found.reason) == ("continue", "no run has a score of thumb yet")
    for context in contexts:
        if context["result"].final_output == V1.text:
            record_score(context, "thumb", 1)
    (held_up,) = status("support").warnings
    assert "units with a score are not counted yet: an earlier unit has none" in held_up


async def test_scores_outside_of_the_range_do_not_count_and_are_counted(path: Path) -> None:
    agent = support(rollout(metric="stars", metric_range=(1, 5)))
    for context in await runs(agent, range(20)):
        for stars in (9, 4):
            record_score(context, "stars", stars)
    found = status("support")
    assert {arm.mean_score for arm in found.arms} == {4.0}
    assert found.warnings == ("20 scores are outside of metric_range, 1 to 5, and do not count",)


async def test_lost_runs_of_one_arm_break_the_check_of_the_shares(path: Path) -> None:
    agent = support(rollout(guards={"error": 0.1}))
    kept = [n for n in range(120) if drawn(agent, user(n)).metadata["arm"] == "v1"]
    for number in kept:
        await agent.run_async("Hi", user(number))
    found = status("support")
    assert (found.verdict, found.is_alarm, found.arm) == ("stop", True, None)
    assert found.reason.startswith("the arms do not have the units that their shares give them")
    assert found.p_ratio < 0.001


async def test_an_arm_that_hangs_is_an_alarm_although_its_runs_are_cancelled(path: Path) -> None:
    class Slow(FakeModel):
        async def get_response(self, system_instructions: Any, *args: Any, **options: Any) -> Any:
            if system_instructions == V2.text:
                await asyncio.Event().wait()
            return await super().get_response(system_instructions, *args, **options)

    agent = support(rollout(guards={"error": 0.02, "latency_p95": "+30%"}), model=Slow("ok"))
    arm_of = [drawn(agent, user(number)).metadata["arm"] for number in range(100)]
    start = time.monotonic()
    tasks = [asyncio.create_task(agent.run_async("Hi", user(number))) for number in range(100)]
    await asyncio.gather(*(task for task, arm in zip(tasks, arm_of, strict=True) if arm == "v1"))
    await asyncio.sleep(time.monotonic() - start)  # twice as long as all the others
    for task, arm in zip(tasks, arm_of, strict=True):
        if arm == "v2":
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    found = status("support")
    assert sum(arm.units for arm in found.arms) == 100
    assert [arm.failed for arm in found.arms] == [0.0, 1.0]
    assert (found.verdict, found.is_alarm, found.arm) == ("stop", True, "v2")
    assert found.guards[1].p < 0.001, "a cancelled run took at least so long"


async def test_runs_of_evaluations_do_not_count(path: Path) -> None:
    agent = support(rollout())
    cases = [Case("Hi", str(number), context=user(number)) for number in range(4)]
    await evaluate_async(
        {"agent": agent}, Dataset("try", cases), [evaluator(lambda _: True, name="fine")], name="try"
    )
    assert sum(arm.runs for arm in status("support").arms) == 0


async def test_runs_with_a_fixed_arm_are_no_evidence(path: Path) -> None:
    from kantan_agents.lab import promote

    agent = support(rollout(metric="thumb", guards={"error": 0.01}))
    state = promote("support", arm="v2")
    shared_of(agent).accept(state)
    for context in await runs(agent, range(50)):
        record_score(context, "thumb", 0)
    found = status("support")
    assert found.arms[1].units == 50
    assert (found.verdict, found.metric[0].difference, found.p_ratio) == ("continue", None, 1.0)


async def test_a_nested_run_counts_with_its_own_end(path: Path) -> None:
    agent = support(rollout(guards={"tokens": "+20%"}), model=ScriptedModel(lambda _: used(7, "ok")))
    with trace("batch"):
        for number in range(6):
            await agent.run_async("Hi", user(number))
    found = status("support")
    assert sum(arm.runs for arm in found.arms) == 6
    assert {arm.mean_tokens for arm in found.arms if arm.runs} == {7}
    assert all(arm.latency_p95 is not None and arm.latency_p95 < 5 for arm in found.arms if arm.runs)


async def test_a_clock_that_jumps_back_gives_no_latency(path: Path) -> None:
    agent = support(rollout())
    await runs(agent, range(4))
    TraceStore(path)  # everything is written
    with changing(path) as connection:
        connection.execute("UPDATE spans SET ended_at = '1999-01-01T00:00:00+00:00' WHERE name IS NULL")
    found = status("support")
    assert sum(arm.units for arm in found.arms) == 4
    assert {arm.latency_p50 for arm in found.arms} == {None}


@function_tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


async def answer_at_once(run: Run, _call_next: Next) -> None:
    run.result = "cached"  # type: ignore[assignment]


async def test_a_run_that_ends_without_an_answer_of_a_model_does_not_hang(path: Path) -> None:
    calling = ScriptedModel(lambda _: [function_call("pay", {}, call_id="c")])
    choice = rollout(guards={"error": 0.1})
    for options in ({"model": calling, "tools": [pay]}, {"middleware": [answer_at_once]}):
        await runs(support(choice, **options), range(10))
        found = status("support")
        assert [arm.failed for arm in found.arms] == [0.0, 0.0]
        assert sum(arm.units for arm in found.arms) == 10
        assert {one.units for one in found.guards} != {0}  # nothing waits for their end


async def test_the_status_is_json(path: Path) -> None:
    import json

    agent = support(rollout(metric="thumb", guards={"error": 0.02, "latency_p95": "+30%"}))
    for context in await runs(agent, range(10)):
        record_score(context, "thumb", 1)
    data = json.loads(json.dumps(status("support").to_dict()))
    assert (data["rollout"], data["agent"], data["status"], data["verdict"]) == (
        "support:v1-v2",
        "support",
        "running",
        "continue",
    )
    assert [one["guard"] for one in data["guards"]] == ["error", "latency_p95"]
    assert [one["name"] for one in data["arms"]] == ["v1", "v2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("abc", "thumb", 1), "run: must be the context that a run has returned, or its id"),
        (({}, "thumb", 1), "run: must be the context"),
        (("0" * 32, "", 1), "metric: must be a name"),
        (("0" * 32, "rubric", 1), "must be another name: the scores of judges are called 'rubric'"),
        (("0" * 32, "thumb", float("nan")), "value: must be a finite number"),
        (("0" * 32, "thumb", "good"), "value: must be a finite number"),
    ],
)
def test_a_mistaken_score_is_refused(path: Path, arguments: Any, said: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        record_score(*arguments)
    assert said in str(caught.value)
    with pytest.raises(InvalidOptionError, match="comment"):
        record_score("0" * 32, "thumb", 1, comment=5)  # type: ignore[arg-type]


async def test_scores_are_deleted_with_their_trace(path: Path) -> None:
    agent = support(rollout(metric="thumb"))
    (context,) = await runs(agent, range(1))
    record_score(context, "thumb", 1, comment="key sk-proj-" + "a" * 40)
    store = TraceStore(path)
    with changing(path) as connection:
        ((comment,),) = connection.execute("SELECT comment FROM kantan_agents_run_scores").fetchall()
        assert "a" * 40 not in comment
        connection.execute("DELETE FROM traces WHERE id = ?", (store.traces()[0].trace_id,))
        query = "SELECT COUNT(*) FROM kantan_agents_run_scores"
        assert connection.execute(query).fetchone()[0] == 0


def test_several_new_arms_share_alpha() -> None:
    from kantan_agents.lab.rollout.verdict.evidence_about import alarm_level, promotion_level

    plan = rollout(
        arms={"v1": V1, "v2": V2, "v3": "Be fast."}, metric="thumb", guards={"error": 0.1}, alpha=0.1
    ).plan_for("a")
    assert alarm_level(plan) == pytest.approx(0.1 / 5)
    assert promotion_level(plan) == pytest.approx(0.05)


async def test_an_arm_that_loses_the_scores_of_unhappy_users_is_not_promoted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = support(rollout(metric="thumb"))
    for number in range(160):
        context = await agent.run_async("Hi", user(number))
        is_new, is_happy = context["result"].final_output == V2.text, number % 10 < 5
        if is_happy or not is_new:
            record_score(context, "thumb", is_happy)
    later = time.time() + 7_200  # no score can come in time any more
    monkeypatch.setattr("kantan_agents.lab.rollout.observed.runs.time.time", lambda: later)
    found = status("support")
    assert found.metric[0].is_better, "to those who look at scores alone"
    assert found.verdict == "continue"
    assert any(one.startswith("units of some arms have a score more often") for one in found.warnings)


async def test_runs_under_way_hold_up_those_after_them_so_that_a_slow_arm_does_not_look_like_a_failing_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every fifth run of both arms fails at once. The others take their time with the new prompt.
    goes_on = asyncio.Event()

    class Slow(FakeModel):
        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> Any:
            if "fail" in str(input):
                raise RuntimeError("broken")
            if system_instructions == V2.text:
                await goes_on.wait()
            return await super().get_response(system_instructions, input, *rest, **more)

    agent = support(rollout(guards={"error": 0.02}), model=Slow("ok"))

    async def ask(number: int) -> None:
        with suppress(RuntimeError):
            await agent.run_async("fail" if number % 5 == 0 else "Hi", user(number))

    running = [asyncio.create_task(ask(number)) for number in range(300)]
    failing = [n for n in range(0, 300, 5) if drawn(agent, user(n)).metadata["arm"] == "v2"]
    with anyio.fail_after(60):
        while (early := await status_async("support")).arms[1].runs < len(failing):
            continue  # the recorder writes them in its own time
    assert early.arms[1].failed == 1.0, "of those that have ended"
    assert sum(arm.units for arm in early.arms) == 300
    assert early.verdict == "continue"
    later = time.time() + 601
    with monkeypatch.context() as patched:
        patched.setattr("kantan_agents.lab.rollout.observed.runs.time.time", lambda: later)
        hung = await status_async("support")
    assert hung.verdict == "stop", "they hang"
    assert any("runs that have not ended for ten minutes: " in one for one in hung.warnings)
    goes_on.set()
    await asyncio.gather(*running)
    assert await asyncio.to_thread(flush_all, 60.0)  # a status waits two seconds for the recorder
    done = await status_async("support")
    assert done.verdict == "continue"
    assert done.arms[1].failed == pytest.approx(0.2, abs=0.1)
