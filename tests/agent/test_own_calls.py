"""The calls that the library makes itself end, also if a model never does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from agents import Model, ModelResponse, ModelSettings

from kantan_agents import Agent, JudgmentError, Prompt, StatusJudge
from kantan_agents.cli.chat.compact import summarizer
from kantan_agents.core.pipeline import run_result
from kantan_agents.errors import AnswerCutOffError, RetrievalError
from kantan_agents.lab import SimulatedUser, simulated
from kantan_agents.lab.evaluation.evaluators import judged, judges, pairwise, status
from kantan_agents.lab.replay.experiment.tool_answers import checked_simulator
from kantan_agents.middleware import Budget, CompactHistory, Fallback, Retry
from kantan_agents.support.own_calls import MOST_TOKENS
from kantan_agents.testing import OfflineServer, ScriptedModel
from kantan_agents.tools.retrieval import EmbeddingRetriever
from tests.lab.evaluation.values import finished

PROMPT = Prompt("support", "v1", "Answer.")
SOON = ModelSettings(extra_args={"timeout": 0.01})
LATE = "cut off at 0.01 seconds"
SUMMARISES = "You get a part of a conversation"
LONG = [
    {"role": role, "content": f"{role} {number} " * 60}
    for number in range(12)
    for role in ("user", "assistant")
]


class Silent(Model):
    """A model that never answers."""

    async def get_response(self, *_args: Any, **_kwargs: Any) -> ModelResponse:
        await anyio.sleep_forever()
        raise AssertionError

    async def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        await anyio.sleep_forever()
        yield None


class NoWriter(ScriptedModel):
    """A model that never ends a summary; its other answers take longer than the limit of summaries."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        if SUMMARISES in str(kwargs["system_instructions"]):
            await anyio.sleep_forever()
        await anyio.sleep(0.02)
        return await super().get_response(*args, **kwargs)


SLOW: dict[str, Any] = {"model": Silent(), "model_settings": SOON}


@pytest.mark.parametrize(
    "judge",
    [
        judged(PROMPT, **SLOW),
        judges.harmlessness(**SLOW),
        status(["It is done."], passing=["It is done."], **SLOW),
    ],
)
async def test_a_judge_that_takes_too_long_is_a_failed_score(judge: Any) -> None:
    (score,) = (await judge.score(finished("x"))).values()
    assert score.value is None and LATE in str(score.error)


async def test_the_error_of_a_late_answer_names_the_setting() -> None:
    (score,) = (await judged(PROMPT, **SLOW).score(finished("x"))).values()
    assert 'Raise extra_args={"timeout": seconds} in its model_settings' in str(score.error)
    assert "[E206]" in str(score.error)


async def test_late_answers_of_other_own_calls() -> None:
    verdict = await pairwise(**SLOW).compare(finished("x"), finished("y"))
    assert LATE in str(verdict.error)
    with pytest.raises(JudgmentError, match=LATE):
        await StatusJudge(["It is done."], **SLOW).judge("x")
    user = SimulatedUser(SLOW["model"], options={"model_settings": SOON})
    for agent in (
        simulated(Agent("support", "Help.", model=ScriptedModel(["Hi."])), user),
        summarizer(Agent("chat", "Help.", **SLOW)),
        checked_simulator(Agent("tool", "Play the tool.", **SLOW)),
    ):
        assert agent is not None
        with pytest.raises(AnswerCutOffError, match=LATE):
            await agent.run_async("x")
    async with summarizer(Agent("chat", "Help.", **SLOW)).stream("x") as run:
        with pytest.raises(AnswerCutOffError, match=LATE):
            async for _ in run:
                pass


@pytest.mark.parametrize("by_agent", [False, True])
async def test_a_late_summary_is_left_out(by_agent: bool) -> None:
    writer = Agent("writer", "Write.", **SLOW) if by_agent else None
    compact = CompactHistory(2_000, summarizer=writer)
    agent = Agent("a", "Help.", model=NoWriter(["Fine."]), model_settings=SOON, middleware=[compact])
    seen: list[Any] = []
    agent.subscribe(seen.append)
    context = await agent.run_async([*LONG, {"role": "user", "content": "Go on"}])
    assert run_result(context).final_output == "Fine."
    (step,) = [one for one in seen if one.type == "history_compacted"]
    assert (step.is_summarized, step.error_type) == (False, "AnswerCutOffError")


async def test_a_summary_has_its_own_limit_which_middleware_does_not_see() -> None:
    with OfflineServer(lambda _request: "Fine.") as server:
        agent = Agent(
            "a",
            "Help.",
            model=server.bundle(),
            model_settings=ModelSettings(max_tokens=50),
            middleware=[CompactHistory(2_000), Budget(max_tokens=6_000)],
        )
        await agent.run_async([*LONG, {"role": "user", "content": "Go on"}])
        limits = [one.body["max_output_tokens"] for one in server.requests]
    assert limits == [*[MOST_TOKENS] * (len(limits) - 1), 50] and len(limits) > 1


async def test_another_model_is_asked_if_an_answer_has_no_end() -> None:
    rated = ScriptedModel([{"score": 1, "comments": []}])
    judge = judged(PROMPT, **SLOW, middleware=[Fallback(rated)])
    assert (await judge.score(finished("x")))["judge"].value == 1.0


class LateOnce(ScriptedModel):
    """A model whose first answer never comes."""

    is_late = False

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        if not self.is_late:
            self.is_late = True
            await anyio.sleep_forever()
        return await super().get_response(*args, **kwargs)


async def test_a_late_answer_is_asked_for_again_with_retry() -> None:
    for attempts, value in ((1, None), (2, 1.0)):
        model = LateOnce([{"score": 1, "comments": []}])
        settings = ModelSettings(extra_args={"timeout": 0.2})
        retry = Retry(attempts, initial_delay=0)
        judge = judged(PROMPT, model=model, model_settings=settings, middleware=[retry])
        assert (await judge.score(finished("x")))["judge"].value == value


async def test_vectors_that_never_come_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kantan_agents.tools.retrieval.retrievers.embeddings.MOST_SECONDS", 0.01)

    async def embed(_texts: list[str]) -> Any:
        await anyio.sleep_forever()

    with pytest.raises(RetrievalError, match=r"no vectors in 0\.01 seconds"):
        await EmbeddingRetriever(embed).vectors_of(["x"])
